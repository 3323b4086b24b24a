/** Runs a checker of published packages (`publint` or `attw`) on what a release would publish, on two at a time. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
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
const checker = checkers[name];

await withPackedPackages(async (packages) => {
  const waiting = packages.values();
  await Promise.all([checkAll(waiting), checkAll(waiting)]);
});

/** @param {Iterable<import("./packages.mjs").Package>} waiting - Shared: whoever takes a package takes it out. */
async function checkAll(waiting) {
  for (const { name: packageName, tarball } of waiting) {
    const [script = "", ...args] = checker(tarball);
    try {
      await promisify(execFile)(process.execPath, [join(root, "node_modules", script), ...args]);
      console.log(`ok      ${packageName}`);
    } catch (error) {
      const { stdout, stderr } = /** @type {{ stdout: string, stderr: string }} */ (error);
      console.log(`FAILED  ${packageName}\n${stdout}${stderr}`);
      process.exitCode = 1;
    }
  }
}
