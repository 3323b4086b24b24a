import { execFile } from "node:child_process";
import { randomInt, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { needs, nightly } from "@fenced/test-support";
import { startRedis } from "@fenced/test-support/databases";
import { describe, expect, it } from "vitest";
import { Replica } from "../support/replica.ts";

const run = promisify(execFile);
const image = "fenced-test:python";
const [users, lengthMs, killEveryMs, rollEveryMs] = [30, 120_000, 6000, 20_000];
/** How many processes are killed, however long that takes on a slow machine. */
const leastKills = 20;
/** What a client does again, perhaps at another process. */
const again: ReadonlySet<string> = new Set(["executor_stopped", "backend_unavailable", "session_in_use"]);

/** Three processes, of which some are replaced. */
class Fleet implements AsyncDisposable {
  readonly #start: () => Promise<Replica>;
  readonly #replicas: Replica[];

  private constructor(start: () => Promise<Replica>, replicas: Replica[]) {
    this.#start = start;
    this.#replicas = replicas;
  }

  static async open(...words: readonly string[]): Promise<Fleet> {
    const start = (): Promise<Replica> => Replica.start(...words);
    return new Fleet(start, await Promise.all([start(), start(), start()]));
  }

  get any(): Replica {
    const alive = this.#replicas.filter(({ hasEnded }) => !hasEnded);
    const chosen = alive[randomInt(Math.max(1, alive.length))];
    if (!chosen) throw new Error("all processes have ended");
    return chosen;
  }

  /** Ends one of them as a power failure does. */
  async kill(): Promise<void> {
    const killed = this.any;
    killed.signal("SIGKILL");
    this.#replace(killed, await this.#start());
  }

  /** Replaces all, one after another, as a deployment does. */
  async roll(): Promise<void> {
    for (const old of this.#replicas.slice()) {
      this.#replace(old, await this.#start());
      await old.drain();
    }
  }

  /** It may have been replaced while the next one was starting. */
  #replace(old: Replica, next: Replica): void {
    const index = this.#replicas.indexOf(old);
    if (index < 0) this.#replicas.push(next);
    else this.#replicas.splice(index, 1, next);
  }

  killAll(): void {
    for (const each of this.#replicas) each.signal("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.killAll();
  }
}

/** Asks until a process answers. */
async function persistently(fleet: Fleet, ask: (replica: Replica) => Promise<string | undefined>): Promise<string> {
  const until = Date.now() + 120_000;
  for (;;) {
    const answer = await ask(fleet.any).catch(() => undefined);
    if (answer !== undefined) return answer;
    if (Date.now() > until) throw new Error("nobody answered for two minutes");
    await sleep(randomInt(50, 300));
  }
}

async function countContainers(label: string): Promise<number> {
  const { stdout } = await run("docker", ["ps", "--all", "--quiet", "--filter", `label=fenced.test=${label}`]);
  return stdout.split("\n").filter((line) => line !== "").length;
}

describe("thirty users", { ...needs("docker", "redis"), ...nightly, timeout: 600_000 }, () => {
  it("lose no result, file or variable while processes are killed and replaced, and leave nothing", async ({
    annotate,
  }) => {
    await using engine = await startRedis();
    const label = randomUUID();
    await using fleet = await Fleet.open(engine.url, "unused", "3000", image, label);
    const deadline = Date.now() + lengthMs;
    const problems: string[] = [];
    let [runs, kills] = [0, 0];

    const isOver = (): boolean => Date.now() >= deadline && kills >= leastKills;
    const use = async (key: string): Promise<void> => {
      for (let turn = 1; !isOver(); turn += 1) {
        const id = `${key}-${turn}`;
        const code = [
          "import time",
          `time.sleep(${randomInt(1000) / 1000})`,
          "turns = globals().get('turns', []) + [1]",
          `open("log", "a").write("${turn}\\n")`,
          "lines = open('log').read().split()",
          "print(lines[-1], len(lines), len(turns))",
        ].join("\n");
        const output = await persistently(fleet, async (replica) => {
          const submitted = await replica.submit(key, id, code, "python");
          const { failed, output: said } = submitted.failed ? submitted : await replica.result(key, id);
          if (failed && !again.has(failed.code)) return `${failed.code}: ${failed.message}`;
          return failed ? undefined : said;
        });
        runs += 1;
        if (output !== `${turn} ${turn} ${turn}\n`) problems.push(`${id}: ${JSON.stringify(output)}`);
        if (problems.length > 20) return;
        await sleep(randomInt(500));
      }
    };
    const disturb = async (everyMs: number, action: () => Promise<void>): Promise<void> => {
      for (let next = Date.now() + everyMs; !isOver(); next += everyMs) {
        await sleep(Math.max(0, next - Date.now()));
        await action();
      }
    };
    const kill = async (): Promise<void> => {
      kills += 1;
      await fleet.kill();
    };
    const keys = Array.from({ length: users }, (_, index) => `user-${index}`);
    await Promise.all([
      ...keys.map((key) => use(key)),
      disturb(killEveryMs, kill),
      disturb(rollEveryMs, () => fleet.roll()),
    ]);
    await annotate(`${runs} runs, ${kills} processes killed`);
    expect(problems).toEqual([]);
    expect(kills).toBeGreaterThanOrEqual(leastKills);
    expect(await countContainers(label)).toBe(users);
    fleet.killAll();
    // Nobody comes back for a minute.
    await expect.poll(() => countContainers(label), { timeout: 150_000, interval: 2000 }).toBe(0);
  });
});
