// Uses Python packages in WebAssembly: installs wheels from a folder before the first block.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
// #region packages
import { WasmCodeExecutor } from "@fenced/executor-wasm";
// #endregion

// A folder with one wheel. `pip download --only-binary=:all: --dest wheels attrs` creates one.
const wheels = path.join(createRequire(import.meta.url).resolve("@fenced/executor-wasm/package.json"), "../vendor");
// #region packages
await using executor = new WasmCodeExecutor({ packages: { install: ["packaging"], wheels } });
const code = `
from packaging.version import Version
sorted(["1.10", "1.9", "2.0rc1"], key=Version)
`;
const result = await executor.executeCodeBlocks([{ language: "python", code }]);
console.log(result.output); // ['1.9', '1.10', '2.0rc1']
// #endregion

assert.equal(result.output, "['1.9', '1.10', '2.0rc1']\n");
