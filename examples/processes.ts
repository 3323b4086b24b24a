// Starts a server, calls it from a block and ends it; then talks to a program through its standard input.
// needs: python3
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

await using executor = new LocalCommandLineCodeExecutor();
await executor.files.write("hello.txt", "hello from the workspace");
assert.ok(executor.processes);

// #region processes
const command = ["python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"] as const;
await using server = await executor.processes.start({ command });
await server.stderr.cancel(); // its request log, which is not needed
const greeting = server.stdout.pipeThrough(new TextDecoderStream()).getReader();
const { value = "" } = await greeting.read(); // "Serving HTTP on 127.0.0.1 port 43021 …"
const port = /port (\d+)/.exec(value)?.[1];

const code = `from urllib.request import urlopen
print(urlopen("http://127.0.0.1:${port}/hello.txt").read().decode())`;
const result = await executor.executeCodeBlocks([{ language: "python", code }]);
console.log(result.output); // hello from the workspace
await server.kill(); // and everything that it started
console.log(await server.wait()); // { exitCode: 137 }
// #endregion

assert.equal(result.output, "hello from the workspace\n");

// #region input
const counting = ["python3", "-c", "import sys\nfor line in sys.stdin: print(len(line.split()), flush=True)"] as const;
await using counter = await executor.processes.start({ command: counting, stdin: true });
const input = counter.stdin.getWriter();
const answers = createInterface({ input: Readable.fromWeb(counter.stdout) })[Symbol.asyncIterator]();
const answered: string[] = [];
for (const line of ["to be or not to be", "that is the question"]) {
  await input.write(new TextEncoder().encode(`${line}\n`)); // waits while the program does not read
  answered.push(((await answers.next()) as { value: string }).value);
}
console.log(answered); // [ "6", "4" ]
await input.close(); // ends its input, and so the program
console.log(await counter.wait()); // { exitCode: 0 }
// #endregion

assert.deepEqual(answered, ["6", "4"]);
