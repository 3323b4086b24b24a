import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { LocalExecutorOptions } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { testFullDisk } from "@fenced/test-support/full-disk";
import { smallDisk } from "@fenced/test-support/small-disk";
import { describe, expect, test } from "vitest";
import { executorWith } from "./support/local-executor.ts";

const kinds: readonly (readonly [string, LocalExecutorOptions])[] = [
  ["without a sandbox", {}],
  ["with waiting interpreters", { warm: {} }],
  ["in a sandbox", { isolation: "os-sandbox" }],
];

describe.each(kinds)("a full disk, %s", needs("root", "python3", "bash", "node", "bubblewrap"), (_, options) => {
  testFullDisk((more) => executorWith({ ...options, ...more }));
});

test("a copy on this host keeps its old content until the new one is complete", needs("root", "bash"), async () => {
  const disk = await smallDisk();
  const copy = path.join(disk, "a.bin");
  await writeFile(copy, "the old content");
  const executor = executorWith();
  await executor.files.write("a.bin", new Uint8Array(1_000_000));
  await expect(executor.files.download(["a.bin"], disk)).rejects.toThrow(/ENOSPC|full/);
  expect(await readFile(copy, "utf8")).toBe("the old content");
});
