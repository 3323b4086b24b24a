import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { startAcaEmulator } from "@fenced/aca-emulator";
import { needs } from "@fenced/test-support";
import { isAlive } from "@fenced/test-support/is-alive";
import { machine } from "@fenced/test-support/machines";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { call, python, textOf } from "./support/call.ts";
import { connectStdio, nodeArguments, startCli, type StartedCli } from "./support/start.ts";

const requests = [
  {
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
  },
  { method: "notifications/initialized" },
  {
    id: 2,
    method: "tools/call",
    params: { name: "run_code", arguments: { language: "python", code: "import os\nprint(os.getcwd())" } },
  },
];

/** Sends the requests and returns the answer to the last one: the directory in which the code ran. */
async function workspaceOf({ child }: StartedCli): Promise<string> {
  for (const request of requests) child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...request })}\n`);
  for await (const line of createInterface({ input: child.stdout })) {
    const answer = JSON.parse(line) as { id?: number; result: CallToolResult };
    if (answer.id === 2) return textOf(answer.result).trim();
  }
  throw new Error("the server did not answer");
}

describe("the server on standard input and output", needs("python3"), () => {
  it.each(["stdin", "SIGTERM"] as const)("ends by %s and leaves nothing behind", async (end) => {
    const server = startCli(["--executor", "local"]);
    const workspace = await workspaceOf(server);
    expect(existsSync(workspace)).toBe(true);
    if (end === "stdin") server.child.stdin.end();
    else server.child.kill(end);
    const { exitCode, stdout, stderr } = await server.outcome;
    expect(exitCode).toBe({ stdin: 0, SIGTERM: 143 }[end]);
    expect(existsSync(workspace)).toBe(false);
    // Only the protocol on standard output, and one warning on standard error.
    for (const line of stdout.trim().split("\n")) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
    expect(stderr).toMatch(/^Warning: code runs on this machine without a sandbox.*\n$/);
  });

  it("ends, without reading it, by a message of too many values", async () => {
    const server = startCli(["--executor", "local"]);
    const workspace = await workspaceOf(server);
    server.child.stdin.on("error", () => {});
    server.child.stdin.end(
      `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"a":[${"{},".repeat(600_000)}{}]}}\n`,
    );
    const { exitCode, stderr } = await server.outcome;
    expect(stderr).toMatch(/a message has more than 200000 values/);
    expect([exitCode, existsSync(workspace)]).toEqual([0, false]);
  });

  it("runs code behind the strongest fence by default, and says which", async () => {
    const server = startCli([], await machine("wasm"));
    expect(await workspaceOf(server)).toBe("/workspace");
    server.child.stdin.end();
    const { exitCode, stderr } = await server.outcome;
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(
      /^The code runs in an interpreter in WebAssembly\. Docker was passed over: No Docker daemon/,
    );
  });

  it("says how to get an image that Docker lacks", needs("docker"), async () => {
    const server = startCli(["--image", "fenced-test:missing"]);
    await workspaceOf(server);
    server.child.stdin.end();
    const { stderr } = await server.outcome;
    expect(stderr).toMatch(/Docker was passed over: .* To use Docker, run `docker pull fenced-test:missing` once\.\n$/);
  });

  it("ends with a client that is killed, and kills the code", async () => {
    const fixture = fileURLToPath(new URL("fixtures/client.ts", import.meta.url));
    const args = ["--import", import.meta.resolve("tsx"), fixture, ...nodeArguments, "--executor", "local"];
    const client = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
    onTestFinished(() => void client.kill("SIGKILL"));
    const [line] = (await once(createInterface({ input: client.stdout }), "line")) as [string];
    const [server = 0, program = 0, workspace = ""] = line
      .split(" ")
      .map((word, index) => (index < 2 ? Number(word) : word));
    expect([isAlive(Number(server)), isAlive(Number(program))]).toEqual([true, true]);
    client.kill("SIGKILL");
    const left = () => [isAlive(Number(server)), isAlive(Number(program)), existsSync(String(workspace))];
    await expect.poll(left, { timeout: 60_000 }).toEqual([false, false, false]);
  });

  it("runs code in the given work directory, and keeps the directory", async () => {
    const directory = await temporaryDirectory();
    const client = await connectStdio(["--executor", "local", "--work-dir", directory, "--timeout-ms", "8000"]);
    expect(await python(client, "open('a', 'w').write('kept')")).toContain("printed nothing");
    expect(await python(client, "import time; time.sleep(600)")).toContain("timed out");
    await client.close();
    expect(await readFile(join(directory, "a"), "utf8")).toBe("kept");
  });

  it("loads an executor from a component file", async () => {
    const directory = await temporaryDirectory();
    const file = join(directory, "executor.json");
    const provider = "@fenced/executor-local:LocalCommandLineCodeExecutor";
    const config = { env: { PLACE: "component" } };
    await writeFile(file, JSON.stringify({ provider, componentType: "code_executor", version: 1, config }));
    const client = await connectStdio(["--component", file, "--allow-package", "fenced-executor-mine"]);
    expect(await python(client, "import os; print(os.environ['PLACE'])")).toBe("component\n");
  });
});

describe("over a container", needs("docker"), () => {
  it("runs code and writes files there", async () => {
    const args = [
      "--executor",
      "docker",
      "--image",
      "fenced-test:python",
      "--config",
      '{"pull":"never","network":"none"}',
    ];
    const client = await connectStdio(args);
    await call(client, "write_file", { path: "a.txt", content: "in" });
    expect(await python(client, "import os; print(os.getcwd(), open('a.txt').read())")).toBe("/workspace in\n");
  });
});

describe("over a kernel", needs("jupyter"), () => {
  it("keeps variables, and returns plots as images", async () => {
    const client = await connectStdio(["--executor", "jupyter"]);
    await python(client, "import matplotlib.pyplot as plt");
    const result = await call(client, "run_code", { language: "python", code: "plt.plot([1, 2])\nplt.show()" });
    expect(result.content.at(-1)).toMatchObject({ type: "image", mimeType: "image/png" });
  });
});

describe("over an emulated Azure session", needs("python3"), () => {
  it("runs code in the pool that the environment names", async () => {
    await using emulator = await startAcaEmulator();
    const env = { ACA_POOL_MANAGEMENT_ENDPOINT: emulator.endpoint, ACA_TOKEN: emulator.token() };
    const client = await connectStdio(["--executor", "aca"], { env });
    await call(client, "write_file", { path: "a.txt", content: "in" });
    expect(await python(client, "import os; print(os.getcwd(), open('a.txt').read())")).toBe("/mnt/data in\n");
    await client.close();
    await expect.poll(() => emulator.sessions()).toEqual([]);
  });
});

describe("over another host", needs("ssh", "python3"), () => {
  it("runs code on the host of the config", async () => {
    await using server = await SshServer.start();
    const config = JSON.stringify({ host, configFile: server.configFile });
    const client = await connectStdio(["--executor", "ssh", "--config", config]);
    expect(await python(client, "import os; print('SSH_CONNECTION' in os.environ)")).toBe("True\n");
    await client.close();
    await expect.poll(() => readdirSync(server.temporary)).toEqual([]);
  });
});

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}
