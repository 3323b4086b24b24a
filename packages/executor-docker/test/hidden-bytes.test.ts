import { needs } from "@fenced/test-support";
import { testHiddenBytes } from "@fenced/test-support/hidden-bytes";
import { describe, onTestFinished } from "vitest";
import { createExecutor } from "./support/create-executor.ts";

describe("bytes that code hides in a container", needs("docker"), () => {
  testHiddenBytes((options) => {
    const executor = createExecutor(options);
    onTestFinished(() => executor.stop());
    return executor;
  });
});
