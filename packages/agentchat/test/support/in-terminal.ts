import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

/** How a program ended, and everything it printed. */
export interface Told {
  readonly output: string;
  readonly exitCode: unknown;
  readonly signal: unknown;
}

/** Starts a program, talks to it, and waits for its end. */
export async function talk(
  program: readonly string[],
  answer: (child: ChildProcessWithoutNullStreams) => void,
): Promise<Told> {
  const [command = "", ...args] = program;
  return talkTo(command, args, answer);
}

/** The same in a terminal that Python opens: types `keys`, or the next of them if a list, each time `question` is printed. */
export async function talkInTerminal(
  program: readonly string[],
  { keys, question = "" }: { readonly keys: string | readonly string[]; readonly question?: string },
): Promise<Told> {
  const pty = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
  return talkTo("python3", ["-c", pty, ...program], (child) => {
    let shown = "";
    const left = [keys].flat();
    let asked = 0;
    child.stdout.on("data", (text: Buffer) => {
      shown += text.toString();
      // Without a question, the first output counts as one.
      const questions = question === "" ? 1 : shown.split(question).length - 1;
      for (; asked < questions && left.length > 0; asked += 1) child.stdin.write(left.shift() ?? "");
    });
  });
}

async function talkTo(
  command: string,
  args: readonly string[],
  answer: (child: ChildProcessWithoutNullStreams) => void,
): Promise<Told> {
  const child = spawn(command, args, { env: { ...process.env, TERM: "dumb" } });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout.on("data", (data: Buffer) => (output += data.toString()));
  child.stderr.on("data", (data: Buffer) => (output += data.toString()));
  answer(child);
  const [exitCode, signal]: unknown[] = await once(child, "close");
  return { output, exitCode, signal };
}
