import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { keptSubject } from "../support/kept-subject.ts";

const groups = ["session that outlives its program", "submitted run of a session that outlives its program"];
const onHost = [await keptSubject("warm"), await keptSubject("stateful")];
const inSandbox = await keptSubject("stateful-sandboxed");

describe("executor-local", needs("python3", "bash", "node"), () => {
  for (const subject of onHost) testCodeExecutor({ describe, it, afterAll }, subject, { groups });
});

describe("executor-local in a sandbox", needs("python3", "bash", "node", "bubblewrap"), () => {
  testCodeExecutor({ describe, it, afterAll }, inSandbox, { groups });
});
