/** Runs the benchmarks one after another: all of them, or those whose file names contain one of the arguments. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { sourceFiles } from "./source-files.ts";

const folder = join(import.meta.dirname, "..", "benchmarks");
const wanted = process.argv.slice(2);

for (const file of sourceFiles(folder)) {
  if (wanted.length > 0 && !wanted.some((part) => file.includes(part))) continue;
  console.log(`\n${file}`);
  const { status } = spawnSync(
    process.execPath,
    ["--expose-gc", "--import", "tsx", "--conditions=@fenced/source", join(folder, file)],
    { stdio: "inherit" },
  );
  if (status !== 0) process.exitCode = 1;
}
