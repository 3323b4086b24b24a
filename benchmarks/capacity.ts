/**
 * Measures how much memory one idle session takes, which decides how many sessions a machine can hold: this process's growth, and
 * the proportional share (PSS) of all processes that belong to a session, the container's shim included. The raw floor is a bare
 * interpreter that waits. Needs Linux.
 */
// needs: docker, bubblewrap, python3
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { CodeExecutor } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { WasmCodeExecutor } from "@fenced/executor-wasm";
import Docker from "dockerode";
import { report } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
const count = Number(process.env["FENCED_BENCH_SESSIONS"] ?? 10);
const label = `fenced.capacity.${process.pid}`;
const docker = new Docker();

const kinds: Readonly<Record<string, () => CodeExecutor>> = {
  "OS sandbox": () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" }),
  "OS sandbox, stateful": () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", stateful: true }),
  container: () => new DockerCommandLineCodeExecutor({ image, labels: { [label]: "" } }),
  "container, warm": () => new DockerCommandLineCodeExecutor({ image, warm: {}, labels: { [label]: "" } }),
  "container, stateful": () => new DockerCommandLineCodeExecutor({ image, stateful: true, labels: { [label]: "" } }),
  WebAssembly: () => new WasmCodeExecutor(),
};

const bare = spawn("python3", ["-c", "import time; time.sleep(1000)"]);
await sleep(1000);
const floor = megabytes([bare.pid ?? 0]);
bare.kill();

for (const [kind, create] of Object.entries(kinds)) {
  // The first of each loads modules and starts what all of them share.
  await using first = await started(create);
  globalThis.gc?.();
  const before = { host: process.memoryUsage.rss() / 1e6, place: await places() };
  const executors = await Promise.all(Array.from({ length: count }, () => started(create)));
  globalThis.gc?.();
  const after = { host: process.memoryUsage.rss() / 1e6, place: await places() };
  await Promise.all(executors.map((executor) => executor.stop()));
  await first.stop();
  const ours = [(after.place - before.place) / count];
  const host = [Math.max(0, after.host - before.host) / count];
  report(kind, [
    { what: "memory of an idle session", unit: "MB", raw: [floor], ours, goal: "" },
    { what: "the same, in the host's own process", unit: "MB", raw: [], ours: host, goal: "" },
  ]);
}

async function started(create: () => CodeExecutor): Promise<CodeExecutor> {
  const executor = create();
  await executor.executeCodeBlocks([{ language: "python", code: "print(1)" }]);
  return executor;
}

/** All processes of all sessions: what this process started, and the containers with their shims. */
async function places(): Promise<number> {
  const roots = [process.pid];
  for (const { Id } of await docker.listContainers({ filters: { label: [label] } })) {
    const { State } = await docker.getContainer(Id).inspect();
    roots.push(parentOf(State.Pid));
  }
  const parents = new Map(processes().map((pid) => [pid, parentOf(pid)]));
  const found = new Set(roots);
  for (const _ of Array.from({ length: 8 })) {
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
  }
  found.delete(process.pid);
  return megabytes([...found]);
}

function processes(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);
}

function megabytes(pids: readonly number[]): number {
  const kibibytes = pids.map((pid) => Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0));
  return (kibibytes.reduce((sum, each) => sum + each, 0) * 1024) / 1e6;
}

/** A process may end at any moment. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
