// Watches a directory while code writes into it.
// needs: python3
import assert from "node:assert/strict";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

// #region watch
await using executor = new LocalCommandLineCodeExecutor();
await executor.files.makeDirectory("reports");
const events = executor.files.watch("reports", { recursive: true });
await events.next(); // { type: "start", path: "reports" }: from now on, nothing is missed

const code = 'open("reports/july.txt", "w").write("sold out")';
await executor.executeCodeBlocks([{ language: "python", code }]);

const seen: string[] = [];
for await (const { type, path } of events) {
  seen.push(`${type} ${path}`);
  if (type === "write") break; // ends the watch
}
console.log(seen); // ["create reports/july.txt", "write reports/july.txt"]
// #endregion

assert.deepEqual(seen, ["create reports/july.txt", "write reports/july.txt"]);
