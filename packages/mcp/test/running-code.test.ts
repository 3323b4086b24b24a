import { hostFunction } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { isAlive } from "@fenced/test-support/is-alive";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import type { McpHttpServerOptions } from "../src/index.ts";
import { call, textOf } from "./support/call.ts";
import { connectHttp, startHttp } from "./support/start.ts";

/** A client whose requests are answered almost at once. */
async function impatient(options: Partial<McpHttpServerOptions> = {}): Promise<Client> {
  return (await connectHttp(await startHttp({ answerAfterMs: 300, ...options }))).client;
}

function runningId({ structuredContent }: CallToolResult): string {
  return z.object({ running: z.literal(true), id: z.string() }).parse(structuredContent).id;
}

const untilGo = "import os, time\nwhile not os.path.exists('go'): time.sleep(.02)\n";

describe("code that runs for long", needs("python3"), () => {
  it("goes on when its request is answered, and can be waited for", async () => {
    const client = await impatient();
    const code = `print("one", flush=True)\n${untilGo}print("two")`;
    const first = await call(client, "run_code", { language: "python", code });
    expect(textOf(first)).toMatch(/^The code is still running\. To wait for its end, call wait_for_code with the id "/);
    const id = runningId(first);
    let waited = await call(client, "wait_for_code", { id });
    // Python may need longer than the first answer to print.
    while (!textOf(waited).endsWith("It has printed so far:\none\n")) {
      waited = await call(client, "wait_for_code", { id });
    }
    expect(runningId(waited)).toBe(id);
    await call(client, "write_file", { path: "go", content: "" });
    while (waited.structuredContent?.["running"] === true) waited = await call(client, "wait_for_code", { id });
    expect(textOf(waited)).toBe("one\ntwo\n");
    expect(waited.structuredContent).toMatchObject({ exitCode: 0, output: "one\ntwo\n" });
    const again = await call(client, "wait_for_code", { id });
    expect(again.isError).toBe(true);
    expect(textOf(again)).toContain("There is no running code with the id");
  });

  it("ends when it is cancelled", async () => {
    const client = await impatient();
    const code = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)";
    const id = runningId(await call(client, "run_code", { language: "python", code }));
    const read = async (): Promise<number> => Number(textOf(await call(client, "read_file", { path: "pid" })));
    await expect.poll(read).toBeGreaterThan(0);
    const pid = await read();
    expect(isAlive(pid)).toBe(true);
    expect(textOf(await call(client, "cancel_code", { id }))).toBe("The code was killed.");
    expect(isAlive(pid)).toBe(false);
    expect((await call(client, "cancel_code", { id })).isError).toBe(true);
  });

  it("keeps its session", async () => {
    const client = await impatient({ sessionIdleMs: 2000, maxSessions: 1 });
    const code = `${untilGo}print("lived")`;
    const id = runningId(await call(client, "run_code", { language: "python", code }));
    await new Promise((resolve) => {
      setTimeout(resolve, 4000);
    });
    await call(client, "write_file", { path: "go", content: "" });
    let waited = await call(client, "wait_for_code", { id });
    while (waited.structuredContent?.["running"] === true) waited = await call(client, "wait_for_code", { id });
    expect(textOf(waited)).toBe("lived\n");
  });

  it("still calls functions of the host", async () => {
    const twice = hostFunction({
      name: "twice",
      description: "Doubles a number.",
      input: z.object({ value: z.number() }),
      execute: ({ value }) => value * 2,
    });
    const client = await impatient({
      createExecutor: () => new LocalCommandLineCodeExecutor({ functions: [twice] }),
    });
    const code = `from functions import twice\n${untilGo}print(twice(value=21))`;
    const id = runningId(await call(client, "run_code", { language: "python", code }));
    await call(client, "write_file", { path: "go", content: "" });
    let waited = await call(client, "wait_for_code", { id });
    while (waited.structuredContent?.["running"] === true) waited = await call(client, "wait_for_code", { id });
    expect(textOf(waited)).toBe("42\n");
  });
});
