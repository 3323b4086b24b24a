// Starts executors before they are needed: each caller leases a new one, or waits if all are in use.
// needs: python3
import assert from "node:assert/strict";
// #region pool
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { ExecutorPool } from "@fenced/pool";

const pool = new ExecutorPool({
  create: () => new LocalCommandLineCodeExecutor(), // in production: a container
  warmUp: ({ files }) => files.write("price.txt", "7"),
  min: 2, // kept ready for the next callers
  max: 4,
});
await pool.start(); // two executors are ready

async function answer(code: string): Promise<string> {
  await using lease = await pool.acquire({ signal: AbortSignal.timeout(30_000) });
  const result = await lease.executor.executeCodeBlocks([{ language: "python", code }]);
  return result.output;
} // the executor is stopped, and a new one takes its place

const questions = [1, 2, 3, 4, 5, 6].map((count) => answer(`print(${count} * int(open('price.txt').read()))`));
console.log((await Promise.all(questions)).join("")); // 7 14 21 28 35 42
console.log(pool.counts); // { ready: 0, starting: 2, leased: 0, ending: 2, waiting: 0 }, or similar
await pool.drain({ graceMs: 10_000 }); // on SIGTERM
// #endregion
assert.equal((await questions[5])?.trim(), "42");
assert.deepEqual(pool.counts, { ready: 0, starting: 0, leased: 0, ending: 0, waiting: 0 });
