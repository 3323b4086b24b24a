import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { jupyterPythons, needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { dataFile } from "../src/default-task.ts";
import { pathWithNodeOnly, runDemo, temporaryFolder } from "./run-demo.ts";
import { expectAnswer, expectSolved, turnsOf } from "./solved.ts";

const noDaemon = { DOCKER_HOST: "tcp://127.0.0.1:9" };

describe("the demo without a key", () => {
  it("fails on the data, then solves its task in Python, and leaves nothing behind", needs("python3"), async () => {
    const folder = await temporaryFolder();
    const outcome = await runDemo(["--executor", "local"], { TMPDIR: folder });
    expect(outcome.stdout).toMatch(/^The code runs on this computer, without a sandbox/);
    expectSolved(outcome, "KeyError: None");
    expect(readdirSync(folder).filter((name) => name.startsWith("fenced-"))).toEqual([]);
  });

  it("solves its task in JavaScript if there is no Python", async () => {
    const outcome = await runDemo(["--executor", "local"], { PATH: await pathWithNodeOnly() });
    expect(outcome.stdout).toContain("```javascript");
    expectSolved(outcome, "TypeError: Cannot read properties of undefined");
  });

  it("runs in a container if there is Docker, and says so first", needs("docker"), async () => {
    const outcome = await runDemo(["--image", "fenced-test:python"]);
    expect(outcome.stdout).toMatch(/^The code runs in a Docker or Podman container( with a kernel in user space)?\.\n/);
    expectSolved(outcome, "KeyError: None");
  });

  it("runs in an OS sandbox if there is no Docker", needs("bubblewrap", "python3"), async () => {
    const outcome = await runDemo([], noDaemon);
    expect(outcome.stdout).toMatch(/^The code runs in an OS sandbox\. Docker was passed over: No /);
    expectSolved(outcome, "KeyError: None");
  });

  it("runs in WebAssembly if there is only Node, and leaves nothing behind", async () => {
    const folder = await temporaryFolder();
    const outcome = await runDemo([], { ...noDaemon, PATH: await pathWithNodeOnly(), TMPDIR: folder });
    expect(outcome.stdout).toMatch(/^The code runs in an interpreter in WebAssembly\. Docker was passed over: No /);
    expectSolved(outcome, "KeyError: None");
    expect(readdirSync(folder).filter((name) => name.startsWith("fenced-"))).toEqual([]);
  });

  it("stops at the limit of messages, and mentions --max-messages", async () => {
    const { exitCode, stdout, stderr } = await runDemo(["--executor", "local", "--max-messages", "3"]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain("The limit of 3 messages is reached");
    expect(stderr).toContain("--max-messages");
  });

  it("does not count code that never ran as an answer, whatever the coder says", async () => {
    const record = join(await temporaryFolder(), "hasty.jsonl");
    const modelInfo = { family: "hasty", vision: false, functionCalling: true, structuredOutput: false };
    const content = "```javascript\nconsole.log(1);\n```\n\nTERMINATE";
    const result = { content, usage: { promptTokens: 0, completionTokens: 0 }, finishReason: "stop" };
    await writeFile(record, `${JSON.stringify({ version: 1, modelInfo, request: { messages: [] }, result })}\n`);
    const { exitCode, stderr } = await runDemo(["--executor", "local", "--replay", record, "--max-messages", "2"]);
    expect(stderr).toContain("The chat ended without an answer.");
    expect(exitCode).toBe(1);
  });
});

describe("the demo in a Jupyter kernel", () => {
  it("keeps variables, and saves a chart that the chat names", needs("jupyter"), async () => {
    const folder = await temporaryFolder();
    const output = join(folder, "charts");
    const env = { TMPDIR: folder, PATH: `/usr/bin:${process.env.PATH ?? ""}` };
    const outcome = await runDemo(["--executor", "jupyter", "--output", output], env);
    expect(outcome.stdout).toContain("The code runs on this computer, without a sandbox");
    const said = turnsOf(outcome);
    const runner = said.filter(([who]) => who === "runner");
    expect(runner.map(([, exit]) => exit)).toEqual(["1", "0", "0"]);
    expect(runner[0]?.[2]).toContain("KeyError: None");
    expectAnswer(runner[1]?.[2] ?? "", said.at(-2)?.[2] ?? "");
    const [name = ""] = readdirSync(output);
    expect(runner[2]?.[2]).toContain(`Saved files:\n${name}\n`);
    const picture = readFileSync(join(output, name));
    expect(picture.subarray(1, 4).toString()).toBe("PNG");
    // A PNG begins with its size. An empty chart of this size has about 10 kB.
    const [width, height] = [picture.readUInt32BE(16), picture.readUInt32BE(20)];
    expect(width).toBeGreaterThan(900);
    expect(height).toBeGreaterThan(500);
    expect(picture.length).toBeGreaterThan(20_000);
    expect(readdirSync(folder).filter((each) => each.startsWith("fenced-"))).toEqual([]);
  });

  it("says that there is no chart without matplotlib", needs("jupyter2"), async () => {
    const folder = await temporaryFolder();
    const env = { VIRTUAL_ENV: dirname(dirname(jupyterPythons.jupyter2)) };
    const said = turnsOf(await runDemo(["--executor", "jupyter", "--output", join(folder, "charts")], env));
    expect(said.at(-3)?.[2]?.trim()).toBe(
      "There is no chart: the kernel has no matplotlib. To have it: pip install matplotlib",
    );
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("the data", () => {
  it("is the published file, byte for byte", () => {
    const hash = createHash("sha256").update(readFileSync(dataFile)).digest("hex");
    expect(hash).toBe("0facf769609f1205b82cbceb8238c36af3e6147a0ca0e163902cc6281ce3e917");
    expect(readFileSync(new URL("../data/README.md", import.meta.url), "utf8")).toContain(hash);
  });
});
