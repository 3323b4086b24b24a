// Keeps one executor per user: each user has their own state, users over the limit are refused, and idle sessions end.
// needs: python3
import assert from "node:assert/strict";
// #region sessions
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { ExecutorSessions, QuotaExceededError } from "@fenced/pool";

await using sessions = new ExecutorSessions({
  create: () => new LocalCommandLineCodeExecutor(), // in production: a container
  idleTimeoutMs: 600_000,
  maxSessions: 2,
});

const python = (code: string) => [{ language: "python", code }];
await sessions.files("ann").write("price.txt", "7");
const { output } = await sessions.run("ann", python("print(6 * int(open('price.txt').read()))"));
console.log(output); // 42
await sessions.run("bob", python("open('price.txt', 'w').write('100')")); // bob's own file
try {
  await sessions.run("cid", python("print(1)"));
} catch (error) {
  if (!QuotaExceededError.isInstance(error)) throw error;
  console.log(error.message); // There are already 2 sessions, the most that maxSessions allows. …
}
console.log(sessions.counts); // { open: 2, starting: 0, ending: 0, running: 0, waiting: 0 }
await sessions.drain({ graceMs: 10_000 }); // on SIGTERM
// #endregion
assert.equal(output, "42\n");
assert.equal(sessions.counts.open, 0);
