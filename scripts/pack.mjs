/**
 * Packs every publishable package as a release would, into the folder `packed` or the one in FENCED_TARBALLS, and prints what to
 * install in a project of your own:
 *
 *   npm run pack                             the strongest fence of the machine
 *   npm run pack -- executor-docker ai-sdk   these packages, and those of ours that they need
 *
 * Later checks of packages with FENCED_TARBALLS (publint, attw, check:installs, check:new-executor) take them from there.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { closure, packAll } from "./packages.mjs";
import { runTasks } from "./tasks.mjs";
import { root, userArguments } from "./workspace.mjs";

const asked = userArguments().map((name) => name.replace(/^@fenced\//, ""));
const names =
  asked.length > 0 ? asked : ["core", "executor-auto", "executor-docker", "executor-local", "executor-wasm"];
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

const unknown = names.filter((name) => !packages.some((candidate) => candidate.name === `@fenced/${name}`));
if (unknown.length > 0) {
  const known = packages.map(({ name }) => name.replace("@fenced/", "")).join(", ");
  console.error(
    `\nThere is no package ${unknown.map((name) => `"${name}"`).join(" or ")}. The packages are: ${known}.`,
  );
  process.exit(1);
}
const subjects = packages.filter(({ name }) => names.includes(name.replace("@fenced/", "")));
const needed = new Set(subjects.flatMap((subject) => closure(subject, packages)));
console.log("\nIn a project of your own, run:\n");
console.log(`npm install ${[...needed].map(({ tarball }) => `"${tarball}"`).join(" ")}`);
