// Starts a server in the workspace, talks to it from a block, and ends it.
// needs: python3
import assert from "node:assert/strict";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

await using executor = new LocalCommandLineCodeExecutor();
await executor.files.write("hello.txt", "hello from the workspace");
assert.ok(executor.processes);

// #region processes
const command = ["python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"] as const;
await using server = await executor.processes.start({ command });
await server.stderr.cancel(); // its log of requests: nobody reads it
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
