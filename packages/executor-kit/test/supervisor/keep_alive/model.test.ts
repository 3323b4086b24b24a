import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { needs, nightly } from "@fenced/test-support";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const source = new URL("../../../src/supervisor/keep_alive/", import.meta.url);
const explorer = new URL("../../fixtures/explore_sessions.py", import.meta.url);
const modules = ["packets", "sent_bytes", "session_server"];

/** How often each thing happens at most; `a`, `b` and `c` say how often these programs connect again. */
interface Limits {
  readonly connections: number;
  readonly a?: number;
  /** Takes the session over. */
  readonly b?: number;
  /** Does not. */
  readonly c?: number;
  readonly cuts?: number;
  readonly writes?: number;
  readonly prints?: number;
  /** Packets that arrive without their last byte first. */
  readonly parts?: number;
  /** A program detaches, or ends the session. */
  readonly leaves?: number;
  /** Nothing is heard for longer than a silence, or than a session waits. */
  readonly passes?: number;
  /** The supervisor ends. */
  readonly deaths?: number;
}

/** Returns the number of states, of events between them, and of states from which everything arrived. */
async function explore(limits: Limits): Promise<[states: number, events: number, arrived: number]> {
  const programs = await Promise.all(
    modules.map(async (name): Promise<[string, string]> => [
      `_fenced_${name}`,
      await readFile(new URL(`${name}.py`, source), "utf8"),
    ]),
  );
  const none = { a: 0, b: 0, c: 0, cuts: 0, writes: 0, prints: 0, parts: 0, leaves: 0, passes: 0, deaths: 0 };
  const given = [Object.fromEntries(programs), { ...none, ...limits }].map((each) => JSON.stringify(each));
  const { stdout } = await run("python3", ["-I", explorer.pathname, ...given]);
  const [states = 0, events = 0, arrived = 0] = stdout.split(" ").map(Number);
  return [states, events, arrived];
}

/** The real server, in all orders of events: see `explore_sessions.py` for what must hold in each state. */
describe.skipIf(process.platform !== "linux").concurrent("in each order of events", needs("python3"), () => {
  it("cuts lose, double and reorder nothing: 1,000 states", { timeout: 120_000 }, async () => {
    const [states, , arrived] = await explore({ connections: 1, a: 1, cuts: 1, writes: 1, prints: 1, parts: 1 });
    expect(states).toBeGreaterThan(1000);
    expect(arrived).toBeGreaterThan(1000);
  });

  it("a program that was replaced changes nothing: 2,000 states", { timeout: 120_000 }, async () => {
    const [states, , arrived] = await explore({ connections: 1, b: 1, cuts: 1, writes: 1, prints: 1 });
    expect(states).toBeGreaterThan(2000);
    expect(arrived).toBeGreaterThan(2000);
  });

  it("a session ends only when it should, and then always: 1,900 states", { timeout: 120_000 }, async () => {
    const [states] = await explore({ connections: 1, a: 1, cuts: 1, writes: 1, leaves: 1, passes: 1, deaths: 1 });
    expect(states).toBeGreaterThan(1900);
  });

  it("a program that was replaced comes back late: 5,000 states", { timeout: 300_000, ...nightly }, async () => {
    const [states] = await explore({ connections: 2, a: 1, b: 1, cuts: 2, writes: 1 });
    expect(states).toBeGreaterThan(5000);
  });

  it(
    "a program without leave gets in only when none is there: 7,900 states",
    { timeout: 300_000, ...nightly },
    async () => {
      const [states] = await explore({ connections: 1, c: 1, cuts: 1, writes: 1, leaves: 1, passes: 1 });
      expect(states).toBeGreaterThan(7900);
    },
  );
});
