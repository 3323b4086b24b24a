/**
 * Measures how soon a caller gets an executor from a warm pool of containers, and how long its first block takes, against the start
 * of a container through the daemon's own API in the same run. Needs a daemon and the image `FENCED_BENCH_IMAGE` (default
 * `fenced-test:python`, which `scripts/ci/docker.sh up` creates).
 */
// needs: docker
import { setTimeout as sleep } from "node:timers/promises";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { ExecutorPool } from "@fenced/pool";
import Docker from "dockerode";
import { byTurns, report, timed } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
const docker = new Docker();
const pool = new ExecutorPool({
  create: ({ onSessionLost }) => new DockerCommandLineCodeExecutor({ image, timeoutMs: 300_000, onSessionLost }),
  min: 2,
  max: 3,
});

async function rawStart(): Promise<number> {
  const started = performance.now();
  const options = { Image: image, Cmd: ["sleep", "100000"], HostConfig: { Init: true } };
  const container = await docker.createContainer(options);
  await container.start();
  const taken = performance.now() - started;
  await container.remove({ force: true, v: true });
  return taken;
}

const blocks: number[] = [];

/** Acquires once the pool is full again and nothing else is in progress in it. */
async function acquire(): Promise<number> {
  while (pool.counts.ready < 2 || pool.counts.ending > 0) await sleep(5);
  const began = performance.now();
  await using lease = await pool.acquire();
  const taken = performance.now() - began;
  // The pool starts replacements in the meantime, as in a service.
  blocks.push(
    await timed(async () => {
      const { output } = await lease.executor.executeCodeBlocks([{ language: "python", code: "print(1)" }]);
      if (output !== "1\n") throw new Error(output);
    }),
  );
  return taken;
}

try {
  await pool.start();
  report("A pool of containers against starting one", [
    {
      what: "acquire on a warm pool, against create and start",
      unit: "ms",
      ...(await byTurns(20, rawStart, acquire)),
      goal: "at most 5 ms",
    },
    { what: "the first python block of a lease", unit: "ms", raw: [], ours: blocks, goal: "" },
  ]);
} finally {
  await pool.drain({ graceMs: 0 });
}
