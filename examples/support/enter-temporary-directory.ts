import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Changes the working directory to a temporary one, which is deleted with its content when the program ends. */
export function enterTemporaryDirectory(): void {
  const before = process.cwd();
  const directory = mkdtempSync(join(tmpdir(), "fenced-example-"));
  process.chdir(directory);
  process.once("exit", () => {
    process.chdir(before);
    rmSync(directory, { recursive: true, force: true });
  });
}
