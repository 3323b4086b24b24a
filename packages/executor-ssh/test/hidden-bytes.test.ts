import { needs } from "@fenced/test-support";
import { testHiddenBytes } from "@fenced/test-support/hidden-bytes";
import { describe } from "vitest";
import { create } from "./support/server.ts";

describe("bytes that code hides on the other host", needs("ssh", "python3"), () => {
  testHiddenBytes((options) => create(options));
});
