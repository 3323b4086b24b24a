import { spawn } from "node:child_process";
import { once } from "node:events";

/**
 * Runs a program in its own terminal, through Python, and types a line each time it asks.
 *
 * @param file - the program, a TypeScript file.
 * @param question - the text that ends each question.
 * @returns its exit code.
 */
export async function typedInTerminal(file: string, question: string, lines: readonly string[]): Promise<unknown> {
  const pty = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
  const program = [process.execPath, ...process.execArgv, file];
  const child = spawn("python3", ["-c", pty, ...program], { stdio: ["pipe", "pipe", "inherit"] });
  let shown = "";
  let asked = 0;
  child.stdout.on("data", (data: Buffer) => {
    process.stdout.write(data);
    shown += data.toString();
    const line = shown.split(question).length - 1 > asked ? lines[asked++] : undefined;
    if (line !== undefined) child.stdin.write(`${line}\r`);
  });
  const closed: readonly unknown[] = await once(child, "close");
  return closed[0];
}
