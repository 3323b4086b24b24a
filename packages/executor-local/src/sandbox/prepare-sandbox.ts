import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import type { NetworkPolicy } from "@fenced/core";
import { hostEnvironment, type SessionDirectories } from "@fenced/executor-kit";
import { findProgram } from "../languages/find-languages.ts";
import type { VirtualEnv } from "../virtual-env.ts";
import { userInside, type SandboxPlan } from "./bubblewrap-command.ts";
import { findInstallations, type Installations } from "./find-installations.ts";
import type { SandboxLimits } from "./limit-groups.ts";
import { noBubblewrap } from "./sandbox-problems.ts";
import { isWithin, resolveShares } from "./shared-paths.ts";

/** The settings of a sandbox. */
export interface SandboxWishes {
  /** The executor's id. */
  readonly id: string;
  readonly virtualEnv: VirtualEnv | undefined;
  /** The executor's environment variables for blocks. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of this program's environment variables that blocks also get. */
  readonly inheritEnv: readonly string[];
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  readonly network: NetworkPolicy;
}

/** What is needed to start a sandbox, as often as required. */
export interface PreparedSandbox {
  readonly plan: SandboxPlan;
  /** Environment variables of the first process. */
  readonly firstEnvironment: Readonly<Record<string, string>>;
  /** Blocks' environment variables, which override those of the first process. */
  readonly blockEnvironment: Readonly<Record<string, string>>;
}

/** The session's own directory in the sandbox of an executor with this id. */
export function sandboxDirectory(id: string): string {
  return `/tmp/fenced-${id.slice(0, 8)}`;
}

/** This program's variables that are meaningless, or mean something else, in a sandbox. */
const ownVariables: readonly string[] = ["HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP"];
const userName = "sandbox";

/**
 * Finds bubblewrap and the blocks' programs, resolves the shared paths, and writes the sandbox's own settings.
 *
 * @param programs - the programs that the languages need.
 * @throws BackendUnavailableError if bubblewrap is missing; InvalidInputError if something cannot be shared.
 */
export async function prepareSandbox(
  wishes: SandboxWishes,
  programs: readonly string[],
  directories: SessionDirectories,
  limits: SandboxLimits,
): Promise<PreparedSandbox> {
  const { workDirectory } = directories;
  const shared = await resolveShares({ ...wishes, workDirectory });
  const untrusted = shared.filter(({ mode }) => mode === "write").map(({ source }) => source);
  const base = Object.entries(hostEnvironment(wishes.inheritEnv)).filter(([name]) => !ownVariables.includes(name));
  const searchPath = wishes.env["PATH"] ?? process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin";
  const installed = await findInstallations({ programs, searchPath, virtualEnv: wishes.virtualEnv, untrusted });
  const bubblewrap = findProgram("bwrap", installed.trustedPath);
  if (bubblewrap === undefined) throw noBubblewrap();
  const directory = sandboxDirectory(wishes.id);
  const variables = blockVariables(wishes, installed, searchPath, directory);
  const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const settings = path.join(directories.sessionDirectory, "etc");
  await writeSettings(settings, user, `${directory}/home`);
  const places = installed.places.filter((each) => !shared.some(({ place }) => isWithin(each, place)));
  const plan: SandboxPlan = {
    bubblewrap,
    shared: [...places.toSorted().map((each) => ({ source: each, place: each, mode: "read" as const })), ...shared],
    settings,
    directory,
    workspace: workDirectory,
    programs,
    searchPath: variables["PATH"] ?? searchPath,
    network: wishes.network === "open" ? "open" : "none",
    limits,
    user,
  };
  const first = { ...Object.fromEntries(base), PATH: installed.trustedPath, USER: userName, LOGNAME: userName };
  return { plan, firstEnvironment: { ...first, FENCED_SESSION: wishes.id }, blockEnvironment: variables };
}

/** The found directories take precedence even over a `PATH` from the user. */
function blockVariables(
  { virtualEnv }: SandboxWishes,
  { directories }: Installations,
  searchPath: string,
  directory: string,
): Record<string, string> {
  const bin = virtualEnv ? [virtualEnv.bin] : [];
  const words = [...bin, ...directories, ...searchPath.split(":"), `${directory}/home/.local/bin`];
  return { PATH: words.join(":"), ...(virtualEnv ? { VIRTUAL_ENV: virtualEnv.directory } : {}) };
}

/** Writes the files in which programs look up users and hosts, without information about this machine. */
async function writeSettings(
  directory: string,
  { uid, gid }: { readonly uid: number; readonly gid: number },
  home: string,
): Promise<void> {
  const [user, group] = [userInside(uid), userInside(gid)];
  const files = {
    passwd: `${userName}:x:${user}:${group}:${userName}:${home}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n`,
    group: `${userName}:x:${group}:\nnogroup:x:65534:\n`,
    hosts: `127.0.0.1 localhost ${userName}\n::1 localhost\n`,
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
  };
  await mkdir(directory, { recursive: true });
  await Promise.all(Object.entries(files).map(async ([name, text]) => writeFile(path.join(directory, name), text)));
}
