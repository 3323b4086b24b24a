/**
 * Measures the overhead of the SSH executor over the system's `ssh`: the same programs, each run by an `ssh` that shares a
 * connection, as the executor's do, with a server on this machine.
 */
// needs: ssh
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import { byTurns, report, timed } from "./measure.ts";

await using server = await SshServer.start();
const { configFile, directory } = server;
await using executor = new SshCommandLineCodeExecutor({ host, configFile, timeoutMs: 300_000 });
const control = join(directory, "control");

/** Runs `ssh`, and reads its output to the end. */
async function ssh(...args: readonly string[]): Promise<void> {
  const words = ["-F", configFile, "-o", `ControlPath=${control}`, ...args];
  const child = spawn("ssh", words, { stdio: ["ignore", "pipe", "inherit"] });
  child.stdout.resume();
  await once(child, "close");
  if (child.exitCode !== 0) throw new Error(`ssh ended with ${String(child.exitCode)}`);
}

async function run(code: string): Promise<void> {
  const result = await executor.executeCodeBlocks([{ language: "sh", code }]);
  if (result.exitCode !== 0) throw new Error(result.output);
}

const megabytes = "head -c 104857600 /dev/zero";
const connection = spawn("ssh", ["-F", configFile, "-o", `ControlPath=${control}`, "-M", "-N", host]);
try {
  await executor.start();
  report("SSH executor against `ssh` over a shared connection", [
    {
      what: "sh block, `:`",
      unit: "ms",
      ...(await byTurns(
        30,
        () => timed(() => ssh(host, "sh -c :")),
        () => timed(() => run(":")),
      )),
      goal: "< 30 ms over raw",
    },
    {
      what: "100 MB of output",
      unit: "ms",
      ...(await byTurns(
        3,
        () => timed(() => ssh(host, megabytes)),
        () => timed(() => run(megabytes)),
      )),
      goal: "< 1.5x",
    },
  ]);
} finally {
  connection.kill();
  await once(connection, "exit");
}
