/** Runs a checker of published packages (`publint` or `attw`) on what a release would publish. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { withPackedPackages } from "./packages.mjs";
import { root } from "./workspace.mjs";

const checkers = {
  publint: (/** @type {string} */ tarball) => ["publint/src/cli.js", "run", tarball, "--strict"],
  attw: (/** @type {string} */ tarball) => [
    "@arethetypeswrong/cli/dist/index.js",
    tarball,
    "--profile=esm-only",
    "--format=ascii",
    "--no-definitely-typed",
  ],
};
const [name] = process.argv.slice(2);
if (name !== "publint" && name !== "attw") throw new Error("Say which checker: publint or attw.");

await withPackedPackages(async (packages) => {
  for (const { name: packageName, tarball } of packages) {
    const [script = "", ...args] = checkers[name](tarball);
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "node_modules", script), ...args], {
      encoding: "utf8",
    });
    console.log(status === 0 ? `ok      ${packageName}` : `FAILED  ${packageName}\n${stdout}${stderr}`);
    if (status !== 0) process.exitCode = 1;
  }
});
