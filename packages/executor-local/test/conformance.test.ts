import { testCodeExecutor } from "@fenced/executor-testkit";
import { everyCase, needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { hostSubject } from "./support/host-subject.ts";

describe("executor-local", needs("python3", "bash", "node"), () => {
  testCodeExecutor({ describe, it, afterAll }, hostSubject, everyCase());
});
