/**
 * Leases containers from a pool to many callers at once, and removes containers at random in the meantime. Each lease writes its
 * own data, runs a block, and checks that it sees what it wrote and nothing of anyone else. A lease whose container was removed is
 * retried, as a service would do. Prints the counts, and exits with 1 if a lease was lost or mixed up, or a container was left.
 *
 *     npx tsx --conditions=@fenced/source benchmarks/soak/pool.ts --leases 1000 --callers 50 --max 8
 *     npx tsx --conditions=@fenced/source benchmarks/soak/pool.ts --restart-daemon "systemctl restart docker"
 *
 * Set `DOCKER_HOST` to a separate daemon, so that a restart disturbs nobody else.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { ExecutorPool } from "@fenced/pool";

const { values } = parseArgs({
  options: {
    leases: { type: "string", default: "1000" },
    callers: { type: "string", default: "50" },
    min: { type: "string", default: "4" },
    max: { type: "string", default: "8" },
    "kill-every-ms": { type: "string", default: "1500" },
    image: { type: "string", default: "fenced-test:python" },
    /** A command that restarts the daemon, which is run once, in the middle. Default: none. */
    "restart-daemon": { type: "string" },
  },
});
const run = promisify(execFile);
const label = `fenced-soak-pool-${randomUUID()}`;
const total = Number(values.leases);
const counts = { good: 0, lost: 0, mixedUp: 0, tries: 0, kills: 0, killedInUse: 0, notStarted: 0, restarts: 0 };
const seen = new Set<string>();
let given = 0;
let mostContainers = 0;

const pool = new ExecutorPool({
  create: ({ onSessionLost }) =>
    new DockerCommandLineCodeExecutor({
      image: values.image,
      network: "none",
      labels: { [label]: "1" },
      timeoutMs: 120_000,
      onSessionLost,
    }),
  warmUp: async (executor) => {
    await executor.executeCodeBlocks([{ language: "sh", code: "echo warm > /tmp/warm" }]);
  },
  min: Number(values.min),
  max: Number(values.max),
  maxWaiting: Number(values.callers),
  onError: (error) => console.error(`pool: ${String(error)}`),
});

async function containers(): Promise<string[]> {
  const { stdout } = await run("docker", ["ps", "--all", "--quiet", "--filter", `label=${label}`]);
  return stdout.split("\n").filter((id) => id !== "");
}

/** One lease's work. @returns whether it saw what it should. */
async function work(executor: CodeExecutor): Promise<boolean> {
  const secret = randomUUID();
  await executor.files.write("secret", secret);
  const code = `ls; cat secret /tmp/warm; sleep 0.${Math.floor(Math.random() * 5)}; echo; hostname`;
  const { output, exitCode, stateLost } = await executor.executeCodeBlocks([{ language: "sh", code }]);
  const host = output.trim().split("\n").at(-1) ?? "";
  const isNew = !seen.has(host);
  seen.add(host);
  // The executor replaces a container that was removed before its block began, and reports that.
  if (stateLost) throw new BackendUnavailableError("The container was replaced", { remedy: "Try again." });
  return exitCode === 0 && isNew && output === `secret\n${secret}warm\n\n${host}\n`;
}

/** A lease that succeeds, or is lost after 20 tries. */
async function lease(): Promise<void> {
  for (let tries = 0; tries < 20; tries += 1) if (await leaseOnce()) return;
  counts.lost += 1;
}

/** A separate function, because tsx's translation of `await using` in a loop rethrows the error of an earlier round. */
async function leaseOnce(): Promise<boolean> {
  counts.tries += 1;
  let started = false;
  try {
    await using one = await pool.acquire();
    started = true;
    if (await work(one.executor)) counts.good += 1;
    else counts.mixedUp += 1;
    return true;
  } catch (error) {
    if (!BackendUnavailableError.isInstance(error)) console.error(error);
    if (started) counts.killedInUse += 1;
    else counts.notStarted += 1;
    return false;
  }
}

async function killOne(): Promise<void> {
  const ids = await containers();
  mostContainers = Math.max(mostContainers, ids.length);
  const id = ids[Math.floor(Math.random() * ids.length)];
  if (id === undefined) return;
  const killed = await run("docker", ["rm", "--force", id]).catch(() => undefined);
  if (killed) counts.kills += 1;
}

const soak = { isOver: false };

/** Removes containers, and restarts the daemon once if requested, until all leases are over. */
async function breakThings(): Promise<void> {
  const command = values["restart-daemon"];
  while (!soak.isOver) {
    await sleep(Number(values["kill-every-ms"]));
    await killOne().catch(() => {});
    if (command === undefined || counts.restarts > 0 || given < total / 2) continue;
    counts.restarts += 1;
    await run("sh", ["-c", command]);
  }
}

const breaking = breakThings();
const progress = setInterval(() => console.log({ ...counts, ...pool.counts }), 30_000);
const began = performance.now();
await Promise.all(
  Array.from({ length: Number(values.callers) }, async () => {
    while (given < total) {
      given += 1;
      await lease();
    }
  }),
);
const seconds = (performance.now() - began) / 1000;
soak.isOver = true;
clearInterval(progress);
await breaking;
await pool.drain();
const left = await containers();
console.log({ ...counts, mostContainers, containersLeft: left.length, seconds: Math.round(seconds) });
if (counts.good !== total || left.length > 0) process.exitCode = 1;
