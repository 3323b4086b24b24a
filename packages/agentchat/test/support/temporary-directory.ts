import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A directory that is gone after the tests of the file. */
export function temporaryDirectory(): { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "fenced-agentchat-"));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return { path };
}
