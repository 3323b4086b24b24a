/**
 * Kills a host program with SIGKILL at random moments of each phase of an executor's life, and checks what is left: processes,
 * temporary files, and what the executor's row in `benchmarks/soak/executors.ts` lists. Exits with 1 if anything is left.
 *
 *     npx tsx scripts/soak-kills.ts local --kills 200
 *     npx tsx scripts/soak-kills.ts docker --kills 50 --phase start --parallel 3
 */
import { setTimeout as sleep } from "node:timers/promises";
import { soakExecutors, type SoakSubject } from "../benchmarks/soak/executors.ts";
import { SoakHost } from "../benchmarks/soak/soak-host.ts";
import { commandLine } from "./workspace.mjs";

const phases = ["start", "run", "stop"] as const;
type Phase = (typeof phases)[number];

/** Milliseconds within which everything that a dead program left must disappear. */
const graceMs = 30_000;

const { values, positionals } = commandLine({
  options: {
    kills: { type: "string", default: "200" },
    phase: { type: "string", multiple: true, default: [...phases] },
    parallel: { type: "string", default: "2" },
  },
  allowPositionals: true,
});
const [executorName = ""] = positionals;
const executor = soakExecutors[executorName];
if (!executor) throw new Error(`Name an executor: ${Object.keys(soakExecutors).join(", ")}.`);

const soak = `fenced-soak-${Date.now()}${process.pid}`;
let made = 0;
let failures = 0;

await using subject = await executor.prepare(soak);
const lengths = await phaseLengths(subject);
for (const phase of phases) if (values.phase.includes(phase)) await soakPhase(phase, subject);
if (failures > 0) process.exitCode = 1;

/** The length of each phase in one complete life, in milliseconds, to choose random moments in it. */
async function phaseLengths(where: SoakSubject): Promise<Readonly<Record<Phase, number>>> {
  await using host = await openHost(where);
  const times: number[] = [];
  host.go();
  for (const said of [...phases, "end"]) {
    await host.says(said);
    times.push(performance.now());
  }
  const [start = 0, run = 0, stop = 0, end = 0] = times;
  return { start: run - start, run: stop - run, stop: end - stop };
}

async function soakPhase(phase: Phase, where: SoakSubject): Promise<void> {
  const before = await where.remains();
  const kills = Number(values.kills);
  const left: string[] = [];
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun < kills) {
      begun += 1;
      left.push(...(await killOnce(phase, where)));
    }
  };
  await Promise.all(Array.from({ length: Number(values.parallel) }, worker));
  left.push(...(await lastingly(async () => (await where.remains()).filter((name) => !before.includes(name)))));
  failures += left.length;
  const length = Math.round(lengths[phase]);
  console.log(`${executorName}, ${phase} (${length} ms): ${kills} kills, ${left.length} leftovers`);
  for (const each of left) console.log(`  ${each}`);
}

async function openHost(where: SoakSubject): Promise<SoakHost> {
  made += 1;
  return SoakHost.open(executorName, where.settings, `${soak}${made}`);
}

/** Kills one program in a phase. Returns what is left of it. */
async function killOnce(phase: Phase, where: SoakSubject): Promise<string[]> {
  await using host = await openHost(where);
  host.go();
  await host.says(phase);
  const moment = Math.random() * lengths[phase];
  await sleep(moment);
  await host.kill();
  const left = await lastingly(async () => host.remains());
  return left.map((each) => `killed ${Math.round(moment)} ms into ${phase}: ${each}`);
}

/** What every look finds until the grace period is over: leftovers of other programs come and go in the meantime. */
async function lastingly(look: () => Promise<readonly string[]>): Promise<readonly string[]> {
  const end = performance.now() + graceMs;
  let left = await look();
  while (left.length > 0 && performance.now() < end) {
    await sleep(50);
    const found = new Set(await look());
    left = left.filter((each) => found.has(each));
  }
  return left;
}
