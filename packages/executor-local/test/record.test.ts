import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { hostFunction, recordFile, verifyRecord } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { playHost } from "@fenced/test-support/loopback-hosts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";

describe("the option record", needs("python3"), () => {
  let directory = "";
  let file = "";
  beforeEach(async () => {
    directory = await mkdtemp(path.join(tmpdir(), "fenced-record-"));
    file = path.join(directory, "runs.jsonl");
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const lines = async (): Promise<unknown[]> =>
    (await readFile(file, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line));

  it("has a line for each run: its code, files, host calls and end, whatever the end", async () => {
    const greet = hostFunction({ name: "greet", description: "Greets.", input: z.object({}), execute: () => "hello" });
    await using executor = new LocalCommandLineCodeExecutor({ record: recordFile(file), functions: [greet] });
    const code = "from functions import greet\ngreet()\nopen('.envrc', 'w').close()";
    await executor.executeCodeBlocks([{ language: "python", code }]);
    await executor.executeCodeBlocks([{ language: "sh", code: "touch late; sleep 100" }], { timeoutMs: 5000 });
    const controller = new AbortController();
    const aborted = executor.streamCodeBlocks([{ language: "sh", code: "touch hidden; echo; sleep 100" }], {
      signal: controller.signal,
    });
    const read = async (): Promise<void> => {
      for await (const { type } of aborted) if (type === "stdout") controller.abort(new Error("enough"));
    };
    await expect(read()).rejects.toThrow("enough");
    expect(await lines()).toMatchObject([
      {
        seq: 1,
        executor: "LocalCommandLineCodeExecutor",
        outcome: "finished",
        exitCode: 0,
        blocks: [{ language: "python", sha256: createHash("sha256").update(code).digest("hex"), exitCode: 0 }],
        changes: { created: [".envrc"], risky: [{ path: ".envrc" }] },
        hostCalls: [{ name: "greet", outcome: "returned" }],
      },
      { seq: 2, outcome: "finished", exitCode: 124, timedOut: true, changes: { created: ["late"] } },
      { seq: 3, outcome: "rejected", error: "Error: enough", changes: { created: ["hidden"] } },
    ]);
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 3 });
  });

  it("names the hosts that the code reached, and those that it was refused", needs("bubblewrap"), async () => {
    const port = await playHost();
    await using executor = new LocalCommandLineCodeExecutor({
      isolation: "os-sandbox",
      network: { allow: ["good.example", "127.0.0.1"], resolve: async () => ["127.0.0.1"] },
      record: recordFile(file),
    });
    const code = `
import urllib.request
for url in ["http://good.example:${port}", "http://evil.example"]:
    try: urllib.request.urlopen(url)
    except OSError as error: print(error)
`;
    await executor.executeCodeBlocks([{ language: "python", code }]);
    const [line] = await lines();
    expect(line).toMatchObject({
      reached: [{ host: "good.example", port }],
      refused: [{ host: "evil.example", port: 80 }],
    });
  });

  it("runs nothing if the record cannot be opened, and loses no result if it cannot be written", async () => {
    const record = path.join(directory, "missing", "runs.jsonl");
    const workDir = path.join(directory, "work");
    await using executor = new LocalCommandLineCodeExecutor({ workDir, record: recordFile(record) });
    const made = executor.executeCodeBlocks([{ language: "sh", code: "touch ../made" }]);
    await expect(made).rejects.toThrow(/cannot be continued/);
    await expect(readFile(path.join(directory, "made"))).rejects.toThrow(/ENOENT/);
    await using other = new LocalCommandLineCodeExecutor({ workDir, record: recordFile(file) });
    await writeFile(file, "");
    const result = await other.executeCodeBlocks([
      { language: "sh", code: "rm ../runs.jsonl; mkdir ../runs.jsonl; echo kept" },
    ]);
    expect(result).toMatchObject({ output: "kept\n", unrecorded: expect.stringContaining("cannot be continued") });
  });
});
