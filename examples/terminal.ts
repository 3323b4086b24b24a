// Runs a program on a terminal, types into it, changes its size, and connects to it a second time.
// needs: python3
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

await using executor = new LocalCommandLineCodeExecutor({ stateful: true });
await executor.start();
if (!executor.processes) throw new Error("This executor cannot start programs");

// #region terminal
const python = ["python3", "-q"] as const; // asks, because it is on a terminal
const shell = await executor.processes.start({ command: python, pty: { columns: 80, rows: 24 } });
const keys = shell.stdin.getWriter();
const type = (text: string) => keys.write(new TextEncoder().encode(text));
await type("import os; print(os.get_terminal_size().columns)\r");
await shell.resize({ columns: 120, rows: 40 });

const [{ pid } = { pid: 0 }] = await executor.processes.list();
const second = await executor.processes.connect(pid); // another reader, of what comes from now on
await type("print(6 * 7)\r");
await type("exit()\r");
console.log((await new Response(second.stdout).text()).includes("42")); // true
console.log(await shell.wait()); // { exitCode: 0 }
// #endregion
