/**
 * What the scripts need to run on a machine that has only Node and npm. It has no dependencies, and no syntax that an old Node
 * cannot parse: it must get far enough to report that Node is too old.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import util from "node:util";
import { inlinePrograms } from "./inline-programs.mjs";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The exit code of a process that was asked to end while one of its children ran, which may end as if nothing had happened. */
let interruption = 0;

/** Where the launchers of npm and pnpm are scripts, which only a shell starts. */
export const onWindows = process.platform === "win32";
const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
const stampFile = join(root, "node_modules", ".fenced-install");

/** Makes `node_modules` match the lockfile. Takes a few milliseconds if it does already. */
export function ensureInstalled() {
  assertNodeVersion();
  const stamp = installStamp();
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;

  const startedAt = Date.now();
  process.stderr.write("Installing dependencies ... ");
  const { status, output } = pnpm(["install", "--frozen-lockfile"]);
  if (status !== 0) fail(`failed.\n\n${output}\n`);
  writeFileSync(stampFile, stamp);
  process.stderr.write(`done in ${((Date.now() - startedAt) / 1000).toFixed(1)} s.\n`);
}

/**
 * Compiles the package in a folder.
 *
 * @param {string} folder
 */
export function compile(folder) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, "-p", folder], { encoding: "utf8" });
  if (status !== 0) fail(`The build failed.\n\n${stdout}${stderr}\n`);
  removeOutdated(folder);
  inlinePrograms(folder);
}

/**
 * Removes what was built from sources that no longer exist: it would be published, and the programs that it reads are missing, too.
 *
 * @param {string} folder
 */
function removeOutdated(folder) {
  for (const file of readdirSync(join(folder, "dist"), { recursive: true, encoding: "utf8" })) {
    const source = file.replace(/\.(?:d\.ts|js)(?:\.map)?$/, "");
    if (source === file || ["ts", "tsx"].some((end) => existsSync(join(folder, "src", `${source}.${end}`)))) continue;
    rmSync(join(folder, "dist", file));
  }
}

/**
 * Runs pnpm in the version that package.json names and waits for it: the one on the PATH if it is that version, otherwise
 * through npx.
 *
 * @param {readonly string[]} args
 * @param {string} [cwd]
 * @returns {{ status: number | null, output: string }}
 */
export function pnpm(args, cwd = root) {
  const [program, ...first] = pnpmCommand();
  const { status, stdout, stderr, error } = spawnSync(program, [...first, ...args], {
    cwd,
    encoding: "utf8",
    // All arguments are ours.
    shell: onWindows,
    maxBuffer: 64 * 1024 * 1024,
  });
  return { status, output: withoutUrls(error === undefined ? `${stdout}${stderr}` : error.message) };
}

/**
 * Runs a program of the workspace in this terminal and ends with its exit code.
 *
 * @param {string} script - A JavaScript file, relative to the repository's root.
 * @param {readonly string[]} args
 * @param {string} [cwd]
 */
export function runAndExit(script, args, cwd = root) {
  const child = spawn(process.execPath, [join(root, script), ...args], { cwd, stdio: "inherit" });
  stopTogether(child);
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? (signal === "SIGINT" ? 130 : 143);
  });
}

/**
 * Lets a child that has this terminal clean up before this process ends: a terminal sends Ctrl+C to both.
 *
 * @param {import("node:child_process").ChildProcess} child
 */
export function stopTogether(child) {
  process.on("SIGINT", () => (interruption = 130));
  process.on("SIGTERM", () => {
    interruption = 143;
    child.kill("SIGTERM");
  });
}

/** The exit code of a process that was asked to end while one of its children ran; 0: it was not. */
export function interruptedWith() {
  return interruption;
}

/** Prints the comment at the beginning of a script, and ends it, if its user asked for help. */
export function helpIfAsked() {
  if (!userArguments().some((word) => word === "--help" || word === "-h")) return;
  process.stdout.write(`${aboutScript()}\n`);
  process.exit();
}

/**
 * The arguments of a script's user. Prints its help if they ask for that, and what is wrong with them if something is.
 *
 * @template {import("node:util").ParseArgsConfig} Config
 * @param {Config} config
 */
export function commandLine(config) {
  helpIfAsked();
  try {
    return util.parseArgs({ ...config, args: userArguments() });
  } catch (error) {
    return fail(`${error instanceof Error ? error.message : String(error)}\n\n${aboutScript()}\n`);
  }
}

/** The comment at the beginning of the script that is running. */
export function aboutScript() {
  const [, comment = ""] = /^\/\*\*\n([^]*?)\n \*\//.exec(readFileSync(process.argv[1] ?? "", "utf8")) ?? [];
  return comment.replaceAll(/^ \* ?/gm, "");
}

/** The user's arguments. npm removes the `--` of `npm run demo -- task`, pnpm passes it on. */
export function userArguments() {
  const args = process.argv.slice(2);
  return args[0] === "--" ? args.slice(1) : args;
}

/**
 * Removes URLs from a program's output: that of a private registry may contain credentials.
 *
 * @param {string} text
 */
export function withoutUrls(text) {
  return text.replaceAll(/https?:\/\/\S+/g, "<address>");
}

function assertNodeVersion() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  fail(
    `Fenced needs Node 20.19 or newer; this is Node ${process.versions.node}. Get a newer one at https://nodejs.org.\n`,
  );
}

function installStamp() {
  const hash = createHash("sha256").update(process.platform + process.arch);
  for (const file of manifests()) hash.update(file).update(readFileSync(join(root, file)));
  return hash.digest("hex");
}

/** All files that determine what is installed. */
function manifests() {
  const folders = ["packages", "apps", "templates"]
    .flatMap((parent) => readdirSync(join(root, parent)).map((name) => join(parent, name)))
    .concat("examples", "benchmarks", "test-support");
  return ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json"]
    .concat(folders.toSorted().map((folder) => join(folder, "package.json")))
    .filter((file) => existsSync(join(root, file)));
}

/**
 * The program and the first arguments that run pnpm in the version that package.json names.
 *
 * @returns {[string, ...string[]]}
 */
export function pnpmCommand() {
  const manifest = /** @type {{ packageManager: string }} */ (
    JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  );
  const { packageManager } = manifest;
  const version = packageManager.replace("pnpm@", "");
  const onPath = spawnSync("pnpm", ["--version"], { cwd: root, encoding: "utf8", shell: onWindows });
  if (onPath.status === 0 && onPath.stdout.trim() === version) return ["pnpm"];
  return ["npx", "-y", packageManager];
}

/** @param {string} message @returns {never} */
function fail(message) {
  process.stderr.write(message);
  process.exit(1);
}
