import type { NetworkPolicy } from "@fenced/core";
import { hostEnvironment, type SessionDirectories } from "@fenced/executor-kit";
import { findProgram } from "../languages/find-languages.ts";
import type { VirtualEnv } from "../virtual-env.ts";
import { userInside, type SandboxPlan, type SettingsFile } from "./bubblewrap-command.ts";
import { compiledSupervisor } from "./compiled-supervisor.ts";
import { findInstallations, type Installations } from "./find-installations.ts";
import type { SandboxLimits } from "./limit-groups.ts";
import { noBubblewrap } from "./sandbox-problems.ts";
import { isWithin, resolveShares } from "./shared-paths.ts";
import { waysOut } from "./ways-out.ts";

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
 * Finds bubblewrap and the blocks' programs, and resolves the shared paths.
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
  const shared = await resolveShares({ ...wishes, workDirectory, identity: directories.identity });
  const untrusted = shared.filter(({ mode }) => mode === "write").map(({ source }) => source);
  const base = Object.entries(hostEnvironment(wishes.inheritEnv)).filter(([name]) => !ownVariables.includes(name));
  const searchPath = searchPathOf(wishes);
  const installed = await findInstallations({ programs, searchPath, virtualEnv: wishes.virtualEnv, untrusted });
  const bubblewrap = findProgram("bwrap", installed.trustedPath);
  if (bubblewrap === undefined) throw noBubblewrap();
  const directory = sandboxDirectory(wishes.id);
  const variables = blockVariables(wishes, installed, searchPath, directory);
  const user = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const places = installed.places.filter((each) => !shared.some(({ place }) => isWithin(each, place)));
  const plan: SandboxPlan = {
    bubblewrap,
    shared: [...places.toSorted().map((each) => ({ source: each, place: each, mode: "read" as const })), ...shared],
    waysOut: await waysOut(shared),
    settings: settingsFiles(user, `${directory}/home`),
    directory,
    workspace: workDirectory,
    programs,
    searchPath: variables["PATH"] ?? searchPath,
    trustedPath: installed.trustedPath,
    compiled: compiledSupervisor(installed.python, installed.trustedPath),
    network: wishes.network === "open" ? "open" : "none",
    limits,
    user,
  };
  const first = { ...Object.fromEntries(base), PATH: installed.trustedPath, USER: userName, LOGNAME: userName };
  const firstEnvironment = { ...first, FENCED_SESSION: wishes.id };
  return { plan, firstEnvironment, blockEnvironment: variables };
}

/** Where programs are searched. */
export function searchPathOf({ env }: Pick<SandboxWishes, "env">): string {
  return env["PATH"] ?? process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin";
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

/** The files in which programs look up users and hosts, without information about this machine. */
function settingsFiles(
  { uid, gid }: { readonly uid: number; readonly gid: number },
  home: string,
): readonly SettingsFile[] {
  const [user, group] = [userInside(uid), userInside(gid)];
  return [
    {
      name: "passwd",
      text: `${userName}:x:${user}:${group}:${userName}:${home}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n`,
    },
    { name: "group", text: `${userName}:x:${group}:\nnogroup:x:65534:\n` },
    { name: "hosts", text: `127.0.0.1 localhost ${userName}\n::1 localhost\n` },
    { name: "nsswitch.conf", text: "passwd: files\ngroup: files\nhosts: files dns\n" },
  ];
}
