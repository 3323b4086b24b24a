/**
 * Packs every publishable package as a release would, into the folder `packed` or the one in FENCED_TARBALLS, and prints what to
 * install in a project of your own:
 *
 *   npm run pack                             the strongest fence of the machine
 *   npm run pack -- executor-docker ai-sdk   these packages, and those of ours that they need
 *
 * Later checks of packages with FENCED_TARBALLS (publint, attw, check:installs, check:new-executor) take them from there.
 */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { closure, packAll } from "./packages.mjs";
import { runTasks } from "./tasks.mjs";
import { helpIfAsked, root, userArguments } from "./workspace.mjs";

helpIfAsked();
const asked = userArguments().map((name) => name.replace(/^@fenced\//, ""));
const packageNames = readdirSync(join(root, "packages"));
const names =
  asked.length > 0 ? asked : ["core", "executor-auto", "executor-docker", "executor-local", "executor-wasm"];
const unknown = names.filter((name) => !packageNames.includes(name));
if (unknown.length > 0) {
  const words = unknown.map((name) => `"${name}"`).join(" or ");
  console.error(`There is no package ${words}. The packages are: ${packageNames.join(", ")}.`);
  process.exit(1);
}
const shared = process.env.FENCED_TARBALLS;
const folder = shared ?? join(root, "packed");

if (shared === undefined) {
  const { status } = await runTasks(["build"], { turboArguments: ["--output-logs=errors-only"], quiet: true });
  if (status !== 0) process.exit(status);
  rmSync(folder, { recursive: true, force: true });
}
mkdirSync(folder, { recursive: true });
const packages = packAll(root, folder);
for (const { name } of packages) console.log(`packed  ${name}`);

const subjects = packages.filter(({ name }) => names.includes(name.replace("@fenced/", "")));
const needed = new Set(subjects.flatMap((subject) => closure(subject, packages)));
console.log("\nIn a project of your own, run:\n");
console.log(`npm install ${[...needed].map(({ tarball }) => `"${tarball}"`).join(" ")}`);
