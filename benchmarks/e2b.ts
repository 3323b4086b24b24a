/**
 * Measures E2B's own client over this server, against the same executor without either. A pool keeps containers started. Needs a
 * daemon and the image `FENCED_BENCH_IMAGE` (default `fenced-test:python`, which `scripts/ci/docker.sh up` creates).
 */
// needs: docker
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { CodeExecutor } from "@fenced/core";
import { nodeListener } from "@fenced/core/runtime";
import { createE2BHandler } from "@fenced/e2b";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { ExecutorPool } from "@fenced/pool";
import { Sandbox } from "e2b";
import { byTurns, report, timed } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
const apiKey = `e2b_${"0".repeat(40)}`;
const create = (): DockerCommandLineCodeExecutor =>
  new DockerCommandLineCodeExecutor({ image, workspacePath: "/home/user" });

await using pool = new ExecutorPool({ create, min: 3, max: 12 });
await pool.start();
await using handler = createE2BHandler({
  templates: { base: async ({ signal }) => (await pool.acquire({ signal })).executor },
  apiKeys: [apiKey],
});
const server = createServer(nodeListener(handler)).listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
const client = { apiKey, apiUrl: url, sandboxUrl: url };

await using executor = create();
await executor.start();
const sandbox = await Sandbox.create("base", client);
await sandbox.files.write("file.txt", "text");
await executor.files.write("file.txt", "text");

/** The sandbox and its first command. The pool then starts the next one. */
async function createAndRun(): Promise<number> {
  const started = performance.now();
  const made = await Sandbox.create("base", client);
  await made.commands.run("true");
  const taken = performance.now() - started;
  await made.kill();
  await ready();
  return taken;
}

async function runTrue({ processes }: CodeExecutor): Promise<void> {
  const process = await processes?.start({ command: ["/bin/bash", "-l", "-c", "true"] });
  const exit = await process?.wait();
  if (exit?.exitCode !== 0) throw new Error("The command did not run.");
}

async function acquireAndRun(): Promise<number> {
  const started = performance.now();
  const lease = await pool.acquire();
  await runTrue(lease.executor);
  const taken = performance.now() - started;
  await lease.release();
  await ready();
  return taken;
}

async function ready(): Promise<void> {
  while (pool.counts.ready < 2) await sleep(20);
}

try {
  report("E2B's client over the server, against the same executor without both", [
    {
      what: "create and first command, with a pool",
      unit: "ms",
      ...(await byTurns(20, acquireAndRun, createAndRun)),
      goal: "at most 30 ms",
    },
    {
      what: "command, `true`",
      unit: "ms",
      ...(await byTurns(
        50,
        () => timed(() => runTrue(executor)),
        () => timed(() => sandbox.commands.run("true")),
      )),
      goal: "",
    },
    {
      what: "read a file of 4 bytes",
      unit: "ms",
      ...(await byTurns(
        50,
        () => timed(() => executor.files.read("file.txt")),
        () => timed(() => sandbox.files.read("file.txt")),
      )),
      goal: "",
    },
  ]);
} finally {
  await sandbox.kill();
  server.closeAllConnections();
  server.close();
}
