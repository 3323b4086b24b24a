// Runs Python and TypeScript in WebAssembly, in restricted processes; needs nothing but Node.
import assert from "node:assert/strict";
// #region wasm
import { WasmCodeExecutor } from "@fenced/executor-wasm";

await using executor = new WasmCodeExecutor({ timeoutMs: 10_000 });
await executor.files.write("numbers.txt", "1 2 3");
const result = await executor.executeCodeBlocks([
  { language: "python", code: "numbers = [int(each) for each in open('numbers.txt').read().split()]" },
  { language: "python", code: "print(sum(numbers))" }, // variables survive
  {
    language: "typescript",
    code: 'import fs from "node:fs";\nconst text: string = fs.readFileSync("numbers.txt", "utf8");',
  },
  { language: "javascript", code: "console.log(text.length)" }, // TypeScript's, too
]);
console.log(result.exitCode, result.output); // 0 "6\n5\n"

const hostile = await executor.executeCodeBlocks([{ language: "python", code: "open('/etc/passwd')" }]);
console.log(hostile.exitCode); // 1: there is no such file
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.equal(result.output, "6\n5\n");
assert.equal(hostile.exitCode, 1);
assert.match(hostile.output, /FileNotFoundError/);
