import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { connectExecutor } from "@fenced/core";
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
import { backend, needs } from "@fenced/test-support";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { create, gone, server } from "./support/server.ts";

const keepAliveMs = 120_000;

/** Prints numbers for some seconds, so that a connection can break in between. */
const counting = {
  language: "python",
  code: "import time\nfor each in range(300):\n    print(each, flush=True)\n    time.sleep(0.01)",
};
const counted = Array.from({ length: 300 }, (_, index) => `${index}\n`).join("");

/** Finds the session's own programs above a block. */
const servers = [
  "import os, time",
  "def parent(pid):",
  "    return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])",
  "pids = [os.getpid()]",
  "while pids[-1] > 1: pids.append(parent(pids[-1]))",
  "servers = [pid for pid in pids if open(f'/proc/{pid}/comm').read() == 'fenced-session\\n']",
].join("\n");

/** The runs of ssh that this program has started. */
async function clients(): Promise<number[]> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = processes.map(async (pid) => {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
    const [, name, parent] = /\((.*)\) \S (\d+)/.exec(stat) ?? [];
    return name === "ssh" && Number(parent) === process.pid ? [Number(pid)] : [];
  });
  return (await Promise.all(found)).flat();
}

async function signalAll(pids: readonly number[] | undefined, signal: NodeJS.Signals): Promise<void> {
  for (const pid of pids ?? []) process.kill(pid, signal);
}

const breaks: Readonly<Record<string, () => Promise<void>>> = {
  "sshd's side of the connection is killed": async () => signalAll(await server?.connections(), "SIGKILL"),
  "ssh is killed": async () => signalAll(await clients(), "SIGKILL"),
  "ssh is stopped": async () => signalAll(await clients(), "SIGSTOP"),
  "sshd is restarted": async () => {
    const connections = await server?.connections();
    await server?.stopListening();
    await signalAll(connections, "SIGKILL");
    await sleep(300);
    await server?.listenAgain();
  },
};

describe("a session with keepAliveMs", needs("ssh", "python3", "bash"), () => {
  it.each(Object.keys(breaks))("goes on, and loses nothing, when %s", async (name) => {
    const executor = create({ keepAliveMs });
    await executor.start();
    await executor.files.write("kept.txt", "kept");
    const running = executor.executeCodeBlocks([counting]);
    await sleep(500);
    await breaks[name]?.();
    expect(await running).toMatchObject({ exitCode: 0, output: counted });
    expect(Buffer.from(await executor.files.read("kept.txt")).toString()).toBe("kept");
    await executor.stop();
    await gone();
  });

  it.each([
    ["server", -1],
    ["supervisor", -2],
  ])("is lost when code ends its %s, and the next call starts another one", async (_, which) => {
    const executor = create({ keepAliveMs });
    const { handle, ...result } = await executor
      .executeCodeBlocks([{ language: "python", code: `${servers}\nos.kill(servers[${which}], 9)\ntime.sleep(5)` }])
      .then((ran) => ({ ...ran, handle: executor.handle }))
      .catch((error: unknown) => ({ error, handle: executor.handle }));
    expect(JSON.stringify(result)).not.toContain('"exitCode":0');
    expect((await executor.executeCodeBlocks([{ language: "bash", code: "echo again" }])).output).toBe("again\n");
    expect(executor.handle).not.toEqual(handle);
    await executor.stop();
    await gone();
  });
});

const isAccount = backend("ssh").available && backend("root").available;
const accountServer = isAccount ? await SshServer.startForAccount() : undefined;
afterAll(async () => accountServer?.[Symbol.asyncDispose]());

describe("a session with keepAliveMs of an ordinary account", needs("ssh", "root", "python3", "bash"), () => {
  it("has a server that its code cannot trace, and goes on for another program", async () => {
    const configFile = accountServer?.configFile ?? "";
    const executor = new SshCommandLineCodeExecutor({ host, configFile, keepAliveMs, stateful: true });
    onTestFinished(() => executor.stop());
    const trace = [
      servers,
      "for pid in servers:",
      "    for name in ('mem', 'environ', 'maps'):",
      "        try:",
      "            open(f'/proc/{pid}/{name}', 'rb').read(1); print('read', pid, name)",
      "        except PermissionError: pass",
      "print(len(servers) > 0)",
    ].join("\n");
    const result = await executor.executeCodeBlocks([{ language: "python", code: trace }]);
    expect(result.output).toBe("True\n");
    const { handle } = executor;
    await executor.detach();
    if (!handle) throw new Error("there is no handle");
    await using again = await connectExecutor(handle, { importModule: () => import("@fenced/executor-ssh") });
    expect((await again.executeCodeBlocks([{ language: "python", code: "len(servers) > 0" }])).output).toBe("True\n");
    await again.stop();
    await expect.poll(async () => accountServer?.remains(), { timeout: 60_000 }).toEqual([]);
  });
});
