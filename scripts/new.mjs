/**
 * `npm run new -- executor NAME [--directory PATH [--package NAME]]`: creates a package with a backend that runs JavaScript in
 * child processes on this host and passes the conformance suite, to change step by step into another one
 * (docs/add-an-executor.md). Without a directory it becomes a package of this workspace; with one, a standalone project that
 * depends on published packages.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeExecutor, makeStandalone, words } from "./new-executor.mjs";
import { ensureInstalled, pnpm, root, userArguments } from "./workspace.mjs";

const usage = "Usage: npm run new -- executor NAME [--directory PATH [--package NAME]]\n";

try {
  main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

function main() {
  const { values, positionals } = parseArguments();
  const [kind, name, ...rest] = positionals;
  if (kind !== "executor" || name === undefined || rest.length > 0) throw new Error(usage);
  if (values.package !== undefined && values.directory === undefined) {
    throw new Error("--package needs --directory: packages of this workspace are called @fenced/executor-NAME.");
  }
  const names = words(name);
  ensureInstalled();
  if (values.directory === undefined) inWorkspace(names);
  else standalone(names, resolve(values.directory), values.package ?? `fenced-executor-${names.kebab}`);
}

function parseArguments() {
  try {
    const options = /** @type {const} */ ({ directory: { type: "string" }, package: { type: "string" } });
    return parseArgs({ args: userArguments(), allowPositionals: true, options });
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${usage}`, { cause: error });
  }
}

/** @param {import("./new-executor.mjs").Names} names */
function inWorkspace(names) {
  const folder = join(root, "packages", `executor-${names.kebab}`);
  makeExecutor(names, folder);
  const changeset = join(root, ".changeset", `executor-${names.kebab}.md`);
  writeFileSync(
    changeset,
    `---\n"@fenced/executor-${names.kebab}": minor\n---\n\nAdd an executor for ${names.title}.\n`,
  );
  addReference(`packages/executor-${names.kebab}`);
  format([folder, join(root, "tsconfig.json")]);
  const { status, output } = pnpm(["install", "--no-frozen-lockfile", "--prefer-offline"]);
  if (status !== 0) throw new Error(`The package was created, but its dependencies could not be installed:\n${output}`);
  say(folder, [
    `npm test -- --project executor-${names.kebab}    the conformance suite, a minute or two`,
    "npm run check    types, lint, format and what would be published",
  ]);
}

/**
 * @param {import("./new-executor.mjs").Names} names
 * @param {string} folder
 * @param {string} packageName
 */
function standalone(names, folder, packageName) {
  makeStandalone(names, folder, packageName);
  format([folder]);
  say(folder, ["npm install", "npm run build", "npm test    the conformance suite, a minute or two"]);
}

/** @param {string} path */
function addReference(path) {
  const file = join(root, "tsconfig.json");
  const config = /** @type {{ references: { path: string }[] }} */ (JSON.parse(readFileSync(file, "utf8")));
  const at = config.references.findIndex((each) => each.path > path || !each.path.startsWith("packages/"));
  config.references.splice(at === -1 ? config.references.length : at, 0, { path });
  writeFileSync(file, `${JSON.stringify(config, undefined, 2)}\n`);
}

/**
 * Formats again, because other names change line lengths.
 *
 * @param {readonly string[]} paths
 */
function format(paths) {
  const formatter = join(root, "node_modules", "oxfmt", "bin", "oxfmt");
  const config = join(root, ".oxfmtrc.json");
  for (const path of paths) {
    const { status, stderr } = spawnSync(process.execPath, [formatter, "--config", config, path], {
      encoding: "utf8",
      cwd: existsSync(join(path, "package.json")) ? path : root,
    });
    if (status !== 0) throw new Error(`${path} could not be formatted:\n${stderr}`);
  }
}

/**
 * @param {string} folder
 * @param {readonly string[]} commands
 */
function say(folder, commands) {
  const place = relative(process.cwd(), folder);
  const next = commands.map((command) => `  ${command}`).join("\n");
  process.stdout.write(`Created ${place}. Next:\n${next}\nThen see docs/add-an-executor.md\n`);
}
