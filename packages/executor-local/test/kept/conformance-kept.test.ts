import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { keptSubject } from "../support/kept-subject.ts";

const subjects = [await keptSubject("warm"), await keptSubject("stateful")];

describe("executor-local", needs("python3", "bash", "node"), () => {
  for (const subject of subjects) {
    testCodeExecutor({ describe, it, afterAll }, subject, {
      groups: ["session that outlives its program", "submitted run of a session that outlives its program"],
    });
  }
});
