import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { recordFile } from "@fenced/core";
import { expect, it, onTestFinished } from "vitest";
import { runNode } from "./support.ts";

const verify = (file: string) => runNode("../src/cli.ts", ["verify-record", file], {}).outcome;

it("fenced verify-record prints the count and the last hash, or the line and what is wrong", async () => {
  const directory = await mkdtemp(path.join(tmpdir(), "fenced-verify-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = path.join(directory, "runs.jsonl");
  const record = recordFile(file);
  for (const exitCode of [0, 1, 0]) {
    await record.add({ executor: "An", blocks: [], outcome: "finished", exitCode, durationMs: 1, hostCalls: [] });
  }
  expect(await verify(file)).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^3 runs\. Last hash: [\da-f]{64}\n$/),
  });
  await writeFile(file, (await readFile(file, "utf8")).replace('"exitCode":1', '"exitCode":0'));
  expect(await verify(file)).toMatchObject({ exitCode: 1, stdout: expect.stringMatching(/^Line 3: .*changed/) });
  expect(await verify(path.join(directory, "missing"))).toMatchObject({ exitCode: 2, stdout: "" });
});
