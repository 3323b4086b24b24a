import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startOpenAIServer, type OpenAIServer, type ScriptedAnswer } from "@fenced/test-support/openai-server";
import { describe, expect, it } from "vitest";
import { runDemo, startDemo, temporaryFolder } from "./run-demo.ts";

/** A live model is asked for JavaScript, which runs on this machine. */
const local = ["--executor", "local"];
const apiKey = "sk-demo-0123456789abcdef";

function environment(server: OpenAIServer): Record<string, string> {
  return { OPENAI_BASE_URL: server.baseURL, OPENAI_API_KEY: apiKey, OPENAI_MODEL: "model-of-the-environment" };
}

function javascript(...lines: string[]): ScriptedAnswer {
  return { text: ["Let me see.\n\n```javascript\n", ...lines.map((line) => `${line}\n`), "```\n"] };
}

const done: ScriptedAnswer = { text: ["That is all. ", "TERMINATE"] };

describe("the demo with an endpoint", () => {
  it("chats with a live model over HTTP", async () => {
    await using server = await startOpenAIServer([javascript("console.log(6 * 7);"), done]);
    const { exitCode, stdout, stderr } = await runDemo([...local, "What is 6 by 7?"], environment(server));
    expect(stderr).toBe("");
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^The coder is model-of-the-environment at 127\.0\.0\.1:\d+\.\n/m);
    expect(stdout).toContain("42\n");
    expect(stdout).toContain("Tokens:   20 in, 10 out");

    const [first, second] = server.requests;
    expect(first?.path).toBe("/v1/chat/completions");
    expect(first?.headers.authorization).toBe(`Bearer ${apiKey}`);
    expect(first?.body).toMatchObject({ model: "model-of-the-environment", stream: true });
    expect(first?.body.messages.map(({ role }) => role)).toEqual(["system", "user"]);
    expect(first?.body.messages[1]?.content).toBe("What is 6 by 7?");
    expect(second?.body.messages.at(-1)).toEqual({ role: "user", content: "runner said:\n42\n" });
  });

  it("uses the model that the command line names, and needs no key", async () => {
    await using server = await startOpenAIServer([done]);
    const { exitCode } = await runDemo([...local, "Hello", "--model", "qwen3"], { OPENAI_BASE_URL: server.baseURL });
    expect(exitCode).toBe(0);
    expect(server.requests[0]?.body.model).toBe("qwen3");
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
  });

  it("hides the key from the code, and gives it the data", async () => {
    const program = javascript(
      "console.log('key', Object.entries(process.env).filter(([n, v]) => /OPENAI/.test(n) || /sk-demo/.test(v)));",
      "console.log(JSON.parse((await import('node:fs')).readFileSync('penguins.json', 'utf8')).length, 'penguins');",
    );
    await using server = await startOpenAIServer([program, done]);
    const { stdout } = await runDemo([...local], environment(server));
    expect(stdout).toContain("\nkey []\n344 penguins\n");
    expect(stdout).not.toContain(apiKey);
  });

  it("says what to do when the service refuses the key, without showing it", async () => {
    await using server = await startOpenAIServer([{ status: 401, error: `Incorrect API key provided: ${apiKey}` }]);
    const { exitCode, stderr, stdout } = await runDemo([...local], environment(server));
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/refused the API key \(HTTP 401\)\. Check that the key is right/);
    expect(stderr + stdout).not.toContain(apiKey);
    expect(stderr).not.toMatch(/^ +at /m);
  });

  it("records a chat that can be replayed without the service", async () => {
    const file = join(await temporaryFolder(), "records", "chat.jsonl");
    await using server = await startOpenAIServer([javascript("console.log(6 * 7);"), done]);
    const live = await runDemo([...local, "What is 6 by 7?", "--record", file], environment(server));
    expect(live.exitCode).toBe(0);
    expect(readFileSync(file, "utf8")).not.toContain(apiKey);
    expect(readFileSync(file, "utf8").split("\n")).toHaveLength(3);

    const replayed = await runDemo([...local, "What is 6 by 7?", "--replay", file]);
    expect(replayed).toMatchObject({ exitCode: 0, stderr: "" });
    const chatOf = (stdout: string): string => stdout.slice(stdout.indexOf("---"), stdout.indexOf("Time:"));
    expect(chatOf(replayed.stdout)).toBe(chatOf(live.stdout));
    expect(server.requests).toHaveLength(2);
  });

  it("fails with the request's number when a replay goes beyond its recording", async () => {
    const file = join(await temporaryFolder(), "chat.jsonl");
    await using server = await startOpenAIServer([javascript("console.log(6 * 7);"), { status: 400, error: "no" }]);
    await runDemo([...local, "--record", file], environment(server));
    const { exitCode, stderr } = await runDemo([...local, "--replay", file]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("has 1 answer, but this is request 2");
  });
});

describe("a signal", () => {
  it("stops the running code and the demo", async () => {
    const folder = await temporaryFolder();
    const pidFile = join(folder, "pid");
    const program = javascript(
      `(await import("node:fs")).writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));`,
      "setInterval(() => {}, 1000);",
    );
    await using server = await startOpenAIServer([program]);
    const { child, outcome } = startDemo([...local], { ...environment(server), TMPDIR: folder });
    await expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, "utf8"), { timeout: 60_000 }).toBeTruthy();
    child.kill("SIGINT");
    const { exitCode, stdout, stderr } = await outcome;
    expect(exitCode).toBe(130);
    expect(stderr).toBe("\nStopped.\n");
    expect(stdout).not.toContain("Summary");
    expect(() => process.kill(Number(readFileSync(pidFile, "utf8")), 0)).toThrow(/ESRCH/);
    expect(readdirSync(folder).filter((name) => name.startsWith("fenced-"))).toEqual([]);
  });

  it("stops the wait for a model", async () => {
    await using server = await startOpenAIServer([{ delayMs: Infinity }]);
    const { child, outcome } = startDemo([...local], environment(server));
    await expect.poll(() => server.requests.length, { timeout: 60_000 }).toBe(1);
    child.kill("SIGTERM");
    expect(await outcome).toMatchObject({ exitCode: 143, stderr: "\nTerminated.\n" });
    expect(await server.requests[0]?.aborted).toBe(true);
  });
});
