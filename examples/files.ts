// Copies files into the workspace and out of it.
// needs: python3
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
// #region files
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
await writeFile("prices.csv", "apple,3\npear,5\n");

// #region files
await using executor = new LocalCommandLineCodeExecutor();
await executor.files.upload(["prices.csv"]); // from this machine
await executor.files.write("settings/currency.txt", "EUR"); // from memory

const code = `
import csv, pathlib
currency = pathlib.Path("settings/currency.txt").read_text()
total = sum(int(price) for _, price in csv.reader(open("prices.csv")))
pathlib.Path("total.txt").write_text(f"{total} {currency}")
`;
const result = await executor.executeCodeBlocks([{ language: "python", code }]);

console.log(await executor.files.list()); // prices.csv, settings/currency.txt, total.txt, with their sizes
const [total = ""] = await executor.files.download(["total.txt"], "results"); // to this machine
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.equal(await readFile(total, "utf8"), "8 EUR");
const listed = await executor.files.list();
assert.deepEqual(
  listed.map(({ path }) => path),
  ["prices.csv", "settings/currency.txt", "total.txt"],
);
await assert.rejects(executor.files.read("../prices.csv"), { code: "path_outside_workspace" });
