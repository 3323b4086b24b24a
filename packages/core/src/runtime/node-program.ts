import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";

/** How to start Node. */
export interface NodeProgram {
  /** An absolute path. */
  readonly file: string;
  /** Variables that it needs besides those that the started program gets anyway. */
  readonly env: Readonly<Record<string, string>>;
  /** For example `"20.19.0"`. */
  readonly version: string;
}

let found: NodeProgram | false | undefined;

/**
 * The program with which to start Node. That is not always `process.execPath`: it may be a single executable application,
 * which would start itself once more; Electron, which would open another window; or Bun or Deno, which ignore options of
 * Node. In those cases but Electron's, looks for `node` in `PATH`, once.
 *
 * @returns `undefined` if there is none.
 */
export function nodeProgram(): NodeProgram | undefined {
  found ??= findNode() ?? false;
  return found === false ? undefined : found;
}

function findNode(): NodeProgram | undefined {
  const { node, electron, bun, deno } = process.versions;
  const own = { file: process.execPath, version: node };
  if (electron !== undefined) return { ...own, env: { ELECTRON_RUN_AS_NODE: "1" } };
  if (bun === undefined && deno === undefined && !isSingleExecutable()) return { ...own, env: {} };
  const programs = (process.env["PATH"] ?? "")
    .split(path.delimiter)
    .filter((directory) => path.isAbsolute(directory))
    .map((directory) => path.join(directory, process.platform === "win32" ? "node.exe" : "node"));
  for (const file of programs) {
    const version = versionOf(file);
    if (version !== undefined) return { file, version, env: {} };
  }
  return undefined;
}

function isSingleExecutable(): boolean {
  try {
    // Node 20.12 and later have this module; it cannot be imported where it does not exist.
    const sea: unknown = createRequire(process.execPath)("node:sea");
    const isSea: unknown = typeof sea === "object" && sea !== null ? Reflect.get(sea, "isSea") : undefined;
    return typeof isSea === "function" && Reflect.apply(isSea, sea, []) === true;
  } catch {
    return false;
  }
}

/** `undefined` if there is none, or something else that is called `node`, such as a link to Bun. */
function versionOf(file: string): string | undefined {
  const question = "process.stdout.write(process.versions.bun ? '' : process.versions.node)";
  try {
    const answer = execFileSync(file, ["-e", question], { encoding: "utf8", env: {}, timeout: 10_000, stdio: "pipe" });
    return /^\d+\.\d+\.\d+/.exec(answer)?.[0];
  } catch {
    return undefined;
  }
}
