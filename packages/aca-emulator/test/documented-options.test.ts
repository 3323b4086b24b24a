import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { needs } from "@fenced/test-support";
import { machine } from "@fenced/test-support/machines";
import { programArguments } from "@fenced/test-support/program-arguments";
import { describe, expect, it, onTestFinished } from "vitest";
import { current, upload } from "./client.ts";

const patience = { timeout: 120_000 };

function start(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcessByStdio<null, Readable, Readable> {
  const all = [...programArguments(new URL("../src/cli.ts", import.meta.url)), ...words];
  const child = spawn(process.execPath, all, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  });
  return child;
}

/** An emulator that was started by its command. */
interface Emulator {
  readonly endpoint: string;
  readonly call: (method: string, path: string, options?: Call) => Promise<Response>;
  readonly execute: (code: string, fields?: object, identifier?: string) => Promise<Response>;
}

interface Call {
  readonly body?: FormData | string;
  readonly identifier?: string;
  readonly query?: Readonly<Record<string, string>>;
}

async function startEmulator(...words: readonly string[]): Promise<Emulator> {
  const child = start(words);
  const said = new Map<string, string>();
  for await (const line of createInterface({ input: child.stdout })) {
    const [word = "", value = ""] = line.split(" ");
    said.set(word, value);
    if (said.has("token")) break;
  }
  const [endpoint = "", token = ""] = [said.get("endpoint"), said.get("token")];
  const call = (method: string, path: string, { body, identifier = "session-1", query }: Call = {}) => {
    const search = new URLSearchParams({ "api-version": current, identifier, ...query });
    const headers = { authorization: `Bearer ${token}` };
    return fetch(`${endpoint}/${path}?${search.toString()}`, { method, headers, ...(body !== undefined && { body }) });
  };
  const execute = (code: string, fields: object = {}, identifier = "session-1") => {
    const body = JSON.stringify({ codeInputType: "Inline", executionType: "Synchronous", code, ...fields });
    return call("POST", "executions", { body, identifier });
  };
  return { endpoint, call, execute };
}

describe.skipIf(process.platform !== "linux")("aca-emulator, with the documented options,", needs("python3"), () => {
  it("listens where it is told, for the names and the token that it is given", patience, async () => {
    const words = ["--port", "0", "--host", "127.0.0.2", "--allow-host", "emulator.test", "--token", "a-known-token"];
    const { endpoint } = await startEmulator(...words, "--pool", "PythonLTS", "--python", "python3");
    const { hostname, port, pathname } = new URL(endpoint);
    expect(hostname).toBe("127.0.0.2");
    const statusFor = (host: string, token: string): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const path = `${pathname}/session?api-version=${current}&identifier=nobody`;
        const headers = { host, authorization: `Bearer ${token}` };
        request({ hostname, port, path, headers }, (answer) => resolve(answer.resume().statusCode))
          .on("error", reject)
          .end();
      });
    expect(await statusFor("emulator.test", "a-known-token")).toBe(400);
    expect(await statusFor("other.test", "a-known-token")).toBe(403);
    expect(await statusFor("emulator.test", "another-token")).toBe(401);
  });

  it("limits sessions, time, output and pages", patience, async () => {
    const limits = ["--max-sessions", "1", "--sync-limit-ms", "1000", "--output-limit", "5", "--page-size", "1"];
    const { call, execute } = await startEmulator(...limits);
    const printed = await (await execute("print('1234567')")).text();
    expect(printed).toContain("12345");
    expect(printed).not.toContain("1234567");
    expect((await execute("1", {}, "session-2")).status).toBe(429);
    for (const name of ["a.txt", "b.txt"]) await call("POST", "files", { body: upload(name, "x") });
    const page = await (await call("GET", "files")).text();
    expect(page).toContain("nextLink");
    expect(page.match(/"name":"[ab]\.txt"/g)).toHaveLength(1);
    const late = await execute("import time; time.sleep(60)");
    expect([late.status, await late.text()]).not.toEqual([200, expect.stringContaining('"Succeeded"')]);
  });

  it("ends idle sessions, without namespaces, and refuses flat bodies", patience, async () => {
    const words = ["--cooldown-ms", "500", "--no-namespaces", "--wrapped-bodies"];
    const { endpoint, call, execute } = await startEmulator(...words, "--token", "a-known-token");
    expect(await (await execute("1")).text()).toContain("SessionPropertiesMissing");
    await call("POST", "files", { body: upload("a.txt", "x") });
    const sessions = async () =>
      (
        await fetch(new URL("/.emulator/sessions", endpoint), { headers: { authorization: "Bearer a-known-token" } })
      ).text();
    await expect.poll(sessions, { timeout: 60_000 }).not.toContain("session-1");
  });

  it.each([
    ["NodeLTS", ["--pool", "NodeLTS"], { code: "6 * 7" }],
    ["Shell", ["--pool", "Shell"], { shellCommand: "echo $((6 * 7))" }],
  ])("runs the code of a pool of type %s", patience, async (_, pool, fields) => {
    const { execute } = await startEmulator(...pool);
    expect(await (await execute("", fields)).text()).toContain("42");
  });

  it("injects faults", patience, async () => {
    const faults = [
      { kind: "latency", milliseconds: 1 },
      { kind: "too-many-requests", retryAfterMs: 1000 },
      { kind: "server-error", status: 503 },
      { kind: "drop" },
      { kind: "expired-token" },
      { kind: "forbidden" },
    ].map((fault, skip) => ({ ...fault, skip, times: 1 }));
    const { execute } = await startEmulator(...faults.flatMap((fault) => ["--fault", JSON.stringify(fault)]));
    const answers: (number | string)[] = [];
    for (const _ of faults) {
      answers.push(
        await execute("1").then(
          ({ status }) => status,
          () => "no answer",
        ),
      );
    }
    expect(answers).toEqual([200, 429, 503, "no answer", 401, 403]);
  });
});

describe("aca-emulator says in a sentence, without a stack trace,", () => {
  async function failure(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    const child = start(words, env);
    const said = text(child.stderr);
    expect(await once(child, "exit")).toEqual([1, null]);
    return said;
  }

  it("what a machine with Node alone lacks", patience, async () => {
    expect(await failure([], await machine("wasm"))).toBe(
      "Sessions need Python 3.8 or later, but python3 is missing or older. Install it, or set --python to another one.\n",
    );
  });

  it.each([
    [["--max-sessions", "0"], "--max-sessions must be a whole number from 1"],
    [["--port", "99999"], "--port must be a whole number from 0 to 65535"],
    [["--nonsense"], "unknown option '--nonsense'"],
  ])("what is wrong with %j", patience, async (words, message) => {
    const said = await failure(words);
    expect(said).toContain(message);
    expect(said).not.toMatch(/^ +at /m);
  });

  it("that its port is taken", { ...needs("python3"), ...patience }, async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const address = taken.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    expect(await failure(["--port", String(port)])).toBe(
      `listen EADDRINUSE: address already in use 127.0.0.1:${port}. Choose another --port.\n`,
    );
  });
});
