import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, nightly } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { keptSubject } from "../support/kept-subject.ts";

const groups = ["session that outlives its program", "submitted run of a session that outlives its program"];
const warm = await keptSubject("warm");
const stateful = await keptSubject("stateful");
const isFull = nightly.skip !== true;
const inSandbox = await keptSubject("stateful-sandboxed");

describe("executor-local", needs("python3", "bash", "node"), () => {
  testCodeExecutor({ describe, it, afterAll }, warm, { groups });
  // In full in the sandbox, below.
  testCodeExecutor({ describe, it, afterAll }, stateful, { groups, cases: isFull ? "all" : "smoke" });
});

describe("executor-local in a sandbox", needs("python3", "bash", "node", "bubblewrap"), () => {
  testCodeExecutor({ describe, it, afterAll }, inSandbox, { groups });
});
