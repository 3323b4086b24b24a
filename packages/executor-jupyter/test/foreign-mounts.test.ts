import { needs } from "@fenced/test-support";
import { testForeignMounts } from "@fenced/test-support/foreign-mounts";
import { describe, onTestFinished } from "vitest";
import { sharedServer } from "./support/local-server.ts";

describe("mounts that code makes on a server's machine", needs("jupyter", "root", "bash"), () => {
  const { executor } = sharedServer("jupyter");
  testForeignMounts(() => {
    const created = executor();
    onTestFinished(() => created.stop());
    return created;
  });
});
