import { type BackendName, needs } from "@fenced/test-support";
import { machine, type MachineKind, machineKinds } from "@fenced/test-support/machines";
import { describe, expect, it } from "vitest";
import { call, python, textOf } from "./support/call.ts";
import { connectHttp, connectStdio, startCli } from "./support/start.ts";

/** What code says about the place where it runs, with each fence. */
const where = "import os, sys\nprint(sys.platform, os.path.exists('/.dockerenv'))";
const places: Readonly<Record<MachineKind, string>> = {
  docker: "linux True\n",
  "os-sandbox": "linux False\n",
  wasm: "emscripten False\n",
};
const image = ["--image", "fenced-test:python"];

const kinds = Object.entries(machineKinds) as [MachineKind, readonly BackendName[]][];
describe.each(kinds)("on a machine whose strongest fence is %s", (kind, backends) => {
  it.each([
    ["no other options", []],
    ["--executor auto", ["--executor", "auto", "--timeout-ms", "50000", "--config", '{"env":{"A":"b"}}']],
  ])("%s opens it", needs(...backends), async (_, args) => {
    const client = await connectStdio([...args, ...image, "--max-output", "5000"], { env: await machine(kind) });
    expect(await python(client, where)).toBe(places[kind]);
  });

  it("--http opens it for each session", needs(...backends), async () => {
    const words = ["--http", "--port", "0", "--host", "127.0.0.1", "--allow-host", "tools.example"];
    words.push("--allow-origin", "https://app.example");
    const token = "a-token-of-this-test";
    const limits = ["--max-sessions", "2", "--session-idle-ms", "60000", "--token", token];
    const pool = kind === "wasm" ? ["--pool", "1"] : [];
    const server = startCli([...words, ...limits, ...pool, ...image], await machine(kind));
    const [, url = ""] = await server.told(/MCP is served at (\S+)/);
    const [first, second] = [await connectHttp({ url, token }), await connectHttp({ url, token })];
    expect(await python(first.client, where)).toBe(places[kind]);
    const preflight = await fetch(url, { method: "OPTIONS", headers: { origin: "https://app.example" } });
    expect(preflight.headers.get("access-control-allow-origin")).toBe("https://app.example");
    await call(first.client, "write_file", { path: "own.txt", content: "first" });
    expect(await python(second.client, "import os; print(os.path.exists('own.txt'))")).toBe("False\n");
    server.child.kill("SIGTERM");
    expect((await server.outcome).exitCode).toBe(143);
  });

  it("--executor opens it by name", needs(...backends), async () => {
    const args = ["--executor", kind, ...(kind === "docker" ? image : [])];
    const client = await connectStdio(args, { env: await machine(kind) });
    expect(await python(client, where)).toBe(places[kind]);
  });
});

describe("on a machine with Node alone", () => {
  it.each([
    [["--executor", "docker"], "DOCKER_HOST"],
    [["--executor", "os-sandbox"], "bubblewrap is not installed"],
    [["--executor", "ssh", "--config", '{"host":"nowhere"}'], "ssh"],
  ])("%j says what is missing", async (args, words) => {
    const client = await connectStdio(args, { env: await machine("wasm") });
    const result = await call(client, "run_code", { language: "python", code: "print(1)" });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain(words);
  });
});
