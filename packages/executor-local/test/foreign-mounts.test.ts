import type { LocalExecutorOptions } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { testForeignMounts } from "@fenced/test-support/foreign-mounts";
import { describe } from "vitest";
import { executorWith } from "./support/local-executor.ts";

const kinds: readonly (readonly [string, LocalExecutorOptions])[] = [
  ["without a sandbox", {}],
  ["with waiting interpreters", { warm: {} }],
];

describe.each(kinds)("mounts that code makes, %s", needs("root", "python3", "bash"), (_, options) => {
  testForeignMounts(() => executorWith(options));
});
