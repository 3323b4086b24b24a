/**
 * Measures what sessions on Kubernetes cost the API server of the cluster that `scripts/ci/kubernetes.sh up` starts: processor
 * time for a session's start and end, and memory and processor time while it is open. The figures in `docs/kubernetes-scale.md`
 * come from it.
 */
// needs: kubernetes
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KubernetesCommandLineCodeExecutor } from "@fenced/executor-kubernetes";
import { testKubeconfig } from "@fenced/test-support/backends";
import { report, timed } from "./measure.ts";

const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";
/** How many sessions are open at once, and how many times this is repeated. */
const [width, waves] = [8, 2];
const idleSeconds = 20;
const server = readFileSync(join(dirname(testKubeconfig), "pids/kube-apiserver"), "utf8").trim();

/** What the API server has used so far: milliseconds of processor time, and MB of memory. */
function used(): { readonly cpuMs: number; readonly memoryMb: number } {
  // The fields after the name, which is in brackets; a tick is a hundredth of a second.
  const fields = readFileSync(`/proc/${server}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  const [, resident = "0"] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server}/status`, "utf8")) ?? [];
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * 10, memoryMb: Number(resident) / 1024 };
}

/** Milliseconds of processor time that `action` costs the API server. */
async function costOf(action: () => Promise<unknown>): Promise<number> {
  const before = used().cpuMs;
  await action();
  return used().cpuMs - before;
}

const idle = () => sleep(idleSeconds * 1000);
const opened: number[] = [];
const held: number[] = [];
const memory: number[] = [];
const took: number[] = [];
const create = () => new KubernetesCommandLineCodeExecutor({ image, kubeconfig: testKubeconfig });

/** Opens sessions at once, leaves them open for a while, and ends them. */
async function wave(): Promise<void> {
  const quiet = await costOf(idle);
  const before = used().memoryMb;
  const executors = Array.from({ length: width }, create);
  let start = 0;
  const life = await costOf(async () => {
    start = await timed(() => Promise.all(executors.map((each) => each.start())));
  });
  const open = await costOf(idle);
  memory.push(Math.max(0, used().memoryMb - before) / width);
  const end = await costOf(() => Promise.all(executors.map((each) => each.stop())));
  took.push(start / width);
  // The cost of the idle cluster does not count for any session.
  opened.push(Math.max(0, life + end - (quiet * start) / (idleSeconds * 1000)) / width);
  held.push((Math.max(0, open - quiet) / width / idleSeconds) * 60);
}

await wave();
for (const list of [opened, held, memory, took]) list.splice(0);
for (let round = 0; round < waves; round++) await wave();

const ours = (numbers: readonly number[]) => ({ raw: [], ours: numbers, goal: "" });
report(`API server, for each of ${width} sessions on Kubernetes that start at once`, [
  { what: "processor time for its start and end", unit: "ms", ...ours(opened) },
  { what: "processor time a minute while it is open", unit: "ms", ...ours(held) },
  { what: "memory while it is open", unit: "MB", ...ours(memory) },
  { what: "start, on the one node of the tests", unit: "ms", ...ours(took) },
]);
