import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

/** A directory that is removed after the tests of the file. */
export function temporaryDirectory(): { readonly path: string } {
  // Created in a hook: if all tests of the file are skipped, no hook runs, and nothing would remove it.
  let path = "";
  beforeAll(() => {
    path = mkdtempSync(join(tmpdir(), "fenced-agentchat-"));
  });
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return {
    get path() {
      return path;
    },
  };
}
