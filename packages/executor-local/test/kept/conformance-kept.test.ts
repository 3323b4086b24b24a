import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { keptSubject } from "../support/kept-subject.ts";

const groups = ["session that outlives its program", "submitted run of a session that outlives its program"];
const warm = await keptSubject("warm");
const stateful = await keptSubject("stateful");
const inSandbox = await keptSubject("stateful-sandboxed");

describe("executor-local", needs("python3", "bash", "node"), () => {
  testCodeExecutor({ describe, it, afterAll }, warm, { groups });
  // In full in the sandbox, below.
  testCodeExecutor({ describe, it, afterAll }, stateful, mechanism(...groups));
});

describe("executor-local in a sandbox", needs("python3", "bash", "node", "bubblewrap"), () => {
  testCodeExecutor({ describe, it, afterAll }, inSandbox, { groups });
});
