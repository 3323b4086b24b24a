/**
 * Runs tasks of the workspace (`turbo.json`) with turbo: each after what it needs, and only those whose inputs have changed. All clones
 * on a machine share what has been run before, in the user's cache folder.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { ensureInstalled, interruptedWith, onWindows, pnpmCommand, root, stopTogether } from "./workspace.mjs";

const turbo = join(root, "node_modules", "turbo", "bin", "turbo");

const summaries = join(root, ".turbo", "runs");
/** Tasks whose outcome depends on more of the machine than Node. */
const onTheMachine = /^(?:test|examples|installs)/;

/**
 * What became of a task.
 *
 * @typedef {object} Task
 * @property {string} taskId - `@fenced/core#build`, or `//#knip` for one of the whole workspace.
 * @property {string} task
 * @property {string} package
 * @property {string} directory - Relative to the repository's root.
 * @property {string} command
 * @property {string} [logFile]
 * @property {{ status: string, timeSaved: number }} cache - `status` is "HIT" or "MISS".
 * @property {{ startTime: number, endTime: number, exitCode: number }} [execution] - Missing if something that it needs has failed.
 */

/** @typedef {Record<string, { available: boolean, reason?: string, remedy?: string }>} Backends */

/**
 * Runs tasks, and ends when all have ended.
 *
 * @param {readonly string[]} tasks - Their names: `build`, or `@fenced/core#build` for that of one package.
 * @param {object} [options]
 * @param {readonly string[]} [options.turboArguments] - More options of `turbo run`.
 * @param {readonly string[]} [options.taskArguments] - For the tasks' commands. With them, nothing is taken from the cache.
 * @param {Readonly<Record<string, string>>} [options.env]
 * @param {(child: import("node:child_process").ChildProcess) => void} [options.watch] - Gets turbo's process. Its output is a pipe then.
 * @param {boolean} [options.quiet] - Shows what turbo prints only if a task fails; for commands whose users asked for something else.
 * @returns {Promise<{ status: number, tasks: readonly Task[], backends: Backends }>} turbo's exit code, all tasks that have a
 * command, and the backends that were looked for.
 */
export async function runTasks(
  tasks,
  { turboArguments = [], taskArguments = [], env = {}, watch, quiet = false } = {},
) {
  ensureInstalled();
  const temporary = mkdtempSync(join(tmpdir(), "tasks-"));
  try {
    // Windows cannot run a link to a script, so turbo calls pnpm itself there.
    const [program, ...first] = onWindows ? [...pnpmCommand(), "exec", "turbo"] : [process.execPath, turbo];
    if (!onWindows) symlinkSync(join(root, "scripts", "run-script.mjs"), join(temporary, "pnpm"));
    /** @type {NodeJS.ProcessEnv & { FENCED_BACKENDS: string }} */
    const environment = {
      ...process.env,
      // As npm and pnpm do for scripts: the workspace's own tools are among the backends.
      PATH: [temporary, join(root, "node_modules", ".bin"), process.env.PATH ?? ""].join(delimiter),
      FENCED_BACKENDS: join(temporary, "backends.json"),
      ...turboEnvironment(),
      ...env,
    };
    if (tasks.some((task) => onTheMachine.test(task.replace(/^.*#/, "")))) {
      environment.FENCED_MACHINE = await machine(environment);
    }
    const force = taskArguments.length > 0 ? ["--force", "--", ...taskArguments] : [];
    const words = [...first, "run", ...tasks, "--summarize", ...turboArguments, ...force];
    const began = Date.now();
    const child = spawn(program, words, {
      cwd: root,
      env: environment,
      stdio: watch === undefined && !quiet ? "inherit" : ["ignore", "pipe", "pipe"],
      shell: onWindows,
      // A watched process is ended together with all that it started.
      detached: watch !== undefined && !onWindows,
    });
    watch?.(child);
    let said = "";
    if (quiet) {
      for (const stream of [child.stdout, child.stderr]) {
        stream?.setEncoding("utf8").on("data", (/** @type {string} */ text) => (said += text));
      }
    }
    // turbo ends with 0 if it was interrupted when all tasks had ended.
    const status = (await ended(child)) || interruptedWith();
    if (status !== 0) process.stderr.write(said);
    return { status, tasks: summarized(tasks, began), backends: backendsIn(environment.FENCED_BACKENDS) };
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/**
 * @param {string} file
 * @returns {Backends}
 */
function backendsIn(file) {
  return existsSync(file) ? /** @type {Backends} */ (JSON.parse(readFileSync(file, "utf8"))) : {};
}

/**
 * What turbo reports about a run. Its tasks may run turbo, too, so that there can be several reports.
 *
 * @param {readonly string[]} tasks
 * @param {number} began
 * @returns {readonly Task[]}
 */
function summarized(tasks, began) {
  const command = ["turbo", "run", ...tasks].join(" ");
  for (const file of existsSync(summaries) ? readdirSync(summaries) : []) {
    const summary = /** @type {{ execution: { command: string, startTime: number }, tasks: readonly Task[] }} */ (
      JSON.parse(readFileSync(join(summaries, file), "utf8"))
    );
    const { execution } = summary;
    if (execution.startTime < began || !`${execution.command} `.startsWith(`${command} `)) continue;
    rmSync(join(summaries, file));
    return summary.tasks.filter((task) => task.command !== "<NONEXISTENT>");
  }
  return [];
}

/** Variables that turbo reads, and what `turbo.json` declares as an input of every task. */
function turboEnvironment() {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  return {
    TURBO_CACHE_DIR: process.env.TURBO_CACHE_DIR ?? join(cache, "fenced", "turbo"),
    TURBO_TELEMETRY_DISABLED: "1",
    FENCED_PLATFORM: `${process.version} ${process.platform} ${process.arch}`,
  };
}

/**
 * Looks for backends, once for all tasks, and returns the versions of everything that tests run on.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<string>}
 */
async function machine(env) {
  const script = join(root, "test-support", "machine.ts");
  const child = spawn(process.execPath, ["--import", "tsx", script], {
    cwd: root,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let found = "";
  child.stdout.setEncoding("utf8").on("data", (/** @type {string} */ text) => (found += text));
  if ((await ended(child)) !== 0) throw new Error("The machine's backends could not be determined (see above).");
  return found;
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {Promise<number>}
 */
function ended(child) {
  stopTogether(child);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 143)));
  });
}
