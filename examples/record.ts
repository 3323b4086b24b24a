// Keeps a record of what runs did, and verifies it.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
// #region record
import { recordFile, verifyRecord } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";

const directory = await mkdtemp(join(tmpdir(), "fenced-record-"));
const file = join(directory, "runs.jsonl");
const executor = new LocalCommandLineCodeExecutor({ record: recordFile(file) });
const result = await executor.executeCodeBlocks([{ language: "sh", code: "echo 'use nix' > .envrc" }]);
console.log(result.changes?.risky); // [{ path: ".envrc", reason: "A shell or …" }]
await executor.stop();

const record = await verifyRecord(file);
console.log(
  record.valid ? `${record.count} run, last hash ${record.lastHash}` : `line ${record.line}: ${record.reason}`,
);
// #endregion
await rm(directory, { recursive: true });
