// Keeps the files of an executor in a store, sees what the code changed, and goes on in another executor.
// needs: bash
import assert from "node:assert/strict";
// #region checkpoints
import { changesBetween, directoryStore } from "@fenced/checkpoints";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
// #region checkpoints
const store = directoryStore("checkpoints");
const bash = (code: string) => [{ language: "bash", code }];
await using executor = new LocalCommandLineCodeExecutor();
await executor.files.write("notes.txt", "one\n");
const before = await executor.checkpoint({ store });
await executor.executeCodeBlocks(bash("echo two >> notes.txt; mkdir out; echo 42 > out/answer"));
const { id, files, newBytes } = await executor.checkpoint({ store });
console.log(files, newBytes); // 2 files; only what has changed was stored
console.log(await changesBetween({ store, id: before.id }, { store, id }));
// { created: [ "out", "out/answer" ], changed: [ "notes.txt" ], deleted: [] }
await executor.stop(); // Its workspace is gone.

// In another program, on another machine, or with another executor: a container, a pod, WebAssembly.
await using later = new LocalCommandLineCodeExecutor({ restore: { store, id } });
const { output } = await later.executeCodeBlocks(bash("cat notes.txt out/answer"));
console.log(output); // one, two, 42
console.log(later.restored); // { id, files: 2, bytes: 11, variables: [], incomplete: [] }
// #endregion

assert.equal(output, "one\ntwo\n42\n");
assert.deepEqual(later.restored, { id, files: 2, bytes: 11, variables: [], incomplete: [] });
for (const checkpoint of await store.list()) await store.delete(checkpoint.id);
assert.equal((await store.sweep()).waiting, 0);
