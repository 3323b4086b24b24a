/**
 * Runs the examples one after another: all of them, or those whose file names contain one of the arguments.
 *
 * An example succeeds if it ends on its own with exit code 0. If it needs more than Node, it has a line like
 * `// needs: python3, pip:tabulate, OPENAI_API_KEY` (backends, packages of pip's index, environment variables in upper
 * case). It is skipped if something is missing, and fails if `FENCED_REQUIRE` names the missing backend.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { needsOf } from "./example-needs.ts";
import { sourceFiles } from "./source-files.ts";

const folder = join(import.meta.dirname, "..", "examples");
const wanted = process.argv.slice(2);
// For examples that run themselves elsewhere with the whole repository, which other projects that contain them do not have.
process.env.FENCED_REPOSITORY = join(folder, "..");
// pnpm's commands set it, which makes packages resolve that the examples do not name.
const { NODE_PATH: _, ...env } = process.env;

for (const file of sourceFiles(folder)) {
  if (wanted.length > 0 && !wanted.some((part) => file.includes(part))) continue;
  const { missing, required } = needsOf(readFileSync(join(folder, file), "utf8"));
  if (missing.length === 0) runExample(file);
  else if (required) fail(file, `it needs ${missing.join(", ")}`);
  else console.log(`skipped ${file}: needs ${missing.join(", ")}`);
}

function runExample(file: string): void {
  const startedAt = Date.now();
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    ["--import", "tsx", "--conditions=@fenced/source", join(folder, file)],
    { encoding: "utf8", timeout: 120_000, cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] },
  );
  if (status === 0) console.log(`ok      ${file} (${((Date.now() - startedAt) / 1000).toFixed(1)} s)`);
  else fail(file, `exit code ${String(status ?? signal)}\n${stdout}${stderr}`);
}

function fail(file: string, reason: string): void {
  process.exitCode = 1;
  console.log(`FAILED  ${file}: ${reason}`);
}
