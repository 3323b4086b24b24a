import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";

/** A directory that is deleted when the test ends. Without symbolic links in its path. */
export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(await realpath(tmpdir()), "fenced-test-"));
  onTestFinished(async () => rm(directory, { recursive: true, force: true }));
  return directory;
}
