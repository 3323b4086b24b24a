import { needs } from "@fenced/test-support";
import { testForeignMounts } from "@fenced/test-support/foreign-mounts";
import { describe } from "vitest";
import { create } from "./support/server.ts";

describe("mounts that code makes on the other host", needs("ssh", "root", "python3", "bash"), () => {
  testForeignMounts(() => create());
});
