import { needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { testCodeExecutor } from "../src/index.ts";
import { only } from "./only.ts";
import { statefulSubject } from "./stateful-subject.ts";

// The tests of executor-local run what is not specific to a session that keeps state.
const special = /^(?:state|concurrency|abort|timeout) > |their turn|return\(\)|once per session|restart\(\)/;

describe("a session that keeps state", needs("python3"), () => {
  testCodeExecutor(
    only({ describe, it, afterAll }, (name) => special.test(name)),
    statefulSubject,
    { concurrent: true },
  );
});
