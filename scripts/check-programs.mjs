/**
 * Lints and formats the Python and shell programs that run in containers, in kernels and on other hosts: Python with ruff,
 * shell with shellcheck if it is installed (it is in CI). `--fix` writes the formatted Python.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PositionEncoding, Workspace } from "@astral-sh/ruff-wasm-nodejs";
import { root } from "./workspace.mjs";

const fix = process.argv.includes("--fix");
const ruff = new Workspace(
  {
    "line-length": 120,
    // Images and hosts may still have this version.
    "target-version": "py37",
    lint: { select: ["E4", "E7", "E9", "F", "B"] },
  },
  PositionEncoding.Utf16,
);
/** @type {string[]} */
const problems = [];

const files = execFileSync("git", ["-c", "safe.directory=*", "ls-files", "packages/*/src/**"], {
  cwd: root,
  encoding: "utf8",
}).split("\n");
for (const file of files.filter((name) => name.endsWith(".py"))) checkPython(file);
checkShell(files.filter((name) => name.endsWith(".sh")));

for (const problem of problems) console.log(problem);
if (problems.length > 0) process.exitCode = 1;

/** @param {string} file */
function checkPython(file) {
  const source = readFileSync(join(root, file), "utf8");
  const diagnostics = /** @type {import("@astral-sh/ruff-wasm-nodejs").Diagnostic[]} */ (ruff.check(source));
  for (const { code, message, start_location: at } of diagnostics) {
    problems.push(`${file}:${at.row}:${at.column}: ${code ?? "syntax"} ${message}`);
  }
  const formatted = ruff.format(source);
  if (formatted === source) return;
  if (fix) writeFileSync(join(root, file), formatted);
  else problems.push(`${file}: not formatted. Run: npm run programs -- --fix`);
}

/** @param {readonly string[]} shellFiles */
function checkShell(shellFiles) {
  if (shellFiles.length === 0) return;
  const { status, stdout, error } = spawnSync("shellcheck", ["--format=gcc", ...shellFiles], {
    cwd: root,
    encoding: "utf8",
  });
  if (error !== undefined) {
    console.log(
      "shellcheck is not installed: the shell programs were not checked (Debian: apt-get install shellcheck).",
    );
    if (process.env.CI === "true") process.exitCode = 1;
  } else if (status !== 0) problems.push(stdout.trim());
}
