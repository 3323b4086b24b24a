// Runs programs through a supervisor, the core of an executor for any place where you can start one process.
// needs: python3
import assert from "node:assert/strict";
// #region supervisor
import { spawn } from "node:child_process";
import { connectSupervisor, supervisorCommand } from "@fenced/executor-kit/supervisor";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
let printed = "";

// #region supervisor
const here = process.cwd();
// A process on this host. Elsewhere: spawn("docker", ["exec", "-i", "box", ...command]), or kubectl, or ssh.
const [program, ...words] = supervisorCommand({ directory: `${here}/session`, workspace: here, programs: ["node"] });
const child = spawn(program, words);
const { supervisor, inventory } = await connectSupervisor(child);
if (!supervisor) throw new Error("There is no Python.");
console.log(inventory.programs.get("node"));

const sink = {
  signal: AbortSignal.timeout(10_000), // kills the program, and whatever it started
  write({ data }: { data: Uint8Array }): undefined {
    printed += Buffer.from(data).toString(); // return a promise to make the program wait
  },
};
const { exitCode } = await supervisor.run(
  { argv: ["sh", "-c", "echo $GREETING; exit 3"], env: { GREETING: "hello" } },
  sink,
);
console.log(exitCode); // 3
child.stdin.end(); // ends the supervisor, and with it everything that it started
// #endregion

assert.equal(printed, "hello\n");
