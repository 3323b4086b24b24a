/**
 * Runs the examples, two at a time: all of them, or those whose file names contain one of the arguments. They run as a reader
 * runs them, on the sources of the packages; with `--built`, as CI does, on what was built from these.
 *
 * An example succeeds if it ends on its own with exit code 0. If it needs more than Node, it has a line like
 * `// needs: python3, pip:tabulate, OPENAI_API_KEY` (backends, packages of pip's index, environment variables in upper
 * case). It is skipped if something is missing, and fails if `FENCED_REQUIRE` names the missing backend.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compileExamples } from "../test-support/compile-examples.ts";
import { needsOf } from "./example-needs.ts";
import { sourceFiles } from "./source-files.ts";
import { helpIfAsked } from "./workspace.mjs";

helpIfAsked();
const folder = join(import.meta.dirname, "..", "examples");
const built = process.argv.includes("--built");
const wanted = process.argv.slice(2).filter((word) => word !== "--built");
// For examples that run themselves elsewhere with the whole repository, which other projects that contain them do not have.
process.env.FENCED_REPOSITORY = join(folder, "..");
// pnpm's commands set it, which makes packages resolve that the examples do not name.
const { NODE_PATH: _, ...env } = process.env;

const files = sourceFiles(folder).filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)));
if (files.length === 0) {
  console.error(`No example's name contains ${wanted.join(" or ")}. The examples are in the folder examples.`);
  process.exit(1);
}
const compiled = built ? await compileExamples(folder, files) : new Map<string, string>();

const left = files.values();
// They mostly wait: for containers, for kernels, and for each other's ends.
await Promise.all([runAll(left), runAll(left)]);

/** @param shared - several runs take from it. */
async function runAll(shared: Iterable<string>): Promise<void> {
  for (const file of shared) {
    const { missing, required } = needsOf(readFileSync(join(folder, file), "utf8"));
    if (missing.length === 0) await runExample(file);
    else if (required) fail(file, `it needs ${missing.join(", ")}`);
    else console.log(`skipped ${file}: needs ${missing.join(", ")}`);
  }
}

function runExample(file: string): Promise<void> {
  const startedAt = Date.now();
  const program = compiled.get(file);
  const source = ["--import", "tsx", "--conditions=@fenced/source", join(folder, file)];
  const words = program === undefined ? source : [program];
  const options = { timeout: 300_000, cwd: folder, env, maxBuffer: 64 * 1_048_576 };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, words, options, (error, stdout, stderr) => {
      if (error === null) console.log(`ok      ${file} (${((Date.now() - startedAt) / 1000).toFixed(1)} s)`);
      else fail(file, `exit code ${String(error.code ?? error.signal)}\n${stdout}${stderr}`);
      resolve();
    });
    child.stdin?.end();
  });
}

function fail(file: string, reason: string): void {
  process.exitCode = 1;
  console.log(`FAILED  ${file}: ${reason}`);
}
