import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Makes a temporary directory the working directory; it is deleted, with all in it, when the program ends. */
export function enterTemporaryDirectory(): void {
  const before = process.cwd();
  const directory = mkdtempSync(join(tmpdir(), "fenced-example-"));
  process.chdir(directory);
  process.once("exit", () => {
    process.chdir(before);
    rmSync(directory, { recursive: true, force: true });
  });
}
