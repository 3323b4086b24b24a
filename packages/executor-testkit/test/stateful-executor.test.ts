import { needs } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { testCodeExecutor } from "../src/index.ts";
import { only } from "./only.ts";
import { statefulSubject } from "./stateful-subject.ts";

// What is not special to a session that keeps state, the tests of executor-local run.
const special = /^(?:state|concurrency|abort|timeout) > |turn|once a session|restart\(\)/;

describe("a session that keeps state", needs("python3"), () => {
  testCodeExecutor(
    only({ describe, it, afterAll }, (name) => special.test(name)),
    statefulSubject,
    { concurrent: true },
  );
});
