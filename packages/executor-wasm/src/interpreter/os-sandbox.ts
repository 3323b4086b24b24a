import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { BackendUnavailableError } from "@fenced/core";
import { installedNode } from "./installed.ts";

/** Whether interpreters run inside an OS sandbox as well. */
export type OsSandboxUse =
  | { readonly used: true }
  /** `reason`: a sentence that says why not. */
  | { readonly used: false; readonly reason: string };

/** Where distributions install bubblewrap. `PATH` is not searched, because it may have directories that others can write to. */
const places = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];
/** Directories of the libraries that Node is linked with. */
const libraries = ["/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64"];
/** The descriptor to which bubblewrap writes the id of the process that it has started. */
export const infoDescriptor = 5;
const probeTakesMs = 10_000;

/** Namespaces and privileges. Every namespace, including the user's, must be available, or the probe fails. */
const options =
  "--unshare-user --unshare-all --uid 1000 --gid 1000 --cap-drop ALL --new-session --die-with-parent --as-pid-1".split(
    " ",
  );
/** Probed once per process. */
let probed: Promise<OsSandboxUse> | undefined;

/**
 * Decides whether to use an OS sandbox.
 *
 * @param wanted - `true`: always; `false`: never; `"auto"`: where it works.
 * @throws BackendUnavailableError if it is required and does not work.
 */
export async function chooseOsSandbox(wanted: boolean | "auto"): Promise<OsSandboxUse> {
  if (wanted === false) return { used: false, reason: "The option osSandbox is false." };
  probed ??= probe();
  const use = await probed;
  if (use.used || wanted === "auto") return use;
  throw new BackendUnavailableError(`The interpreters cannot run inside an OS sandbox: ${use.reason}`, {
    remedy: 'Install bubblewrap where user namespaces are allowed, or set `osSandbox` to "auto".',
  });
}

/**
 * Wraps a command in a sandbox that shows Node, the libraries it is linked with and some directories, all read-only: no
 * other file, process, network, or user.
 *
 * @param directories - what the command reads; it starts in the first. Without any, bubblewrap does not report the process's id.
 */
export function inOsSandbox(
  directories: readonly string[],
  command: readonly string[],
): readonly [program: string, ...words: string[]] {
  const shown = [...directories, installedNode().file];
  const info = directories.length === 0 ? [] : ["--info-fd", String(infoDescriptor)];
  return [
    places.find((each) => existsSync(each)) ?? "bwrap",
    ...options,
    ...info,
    ...libraries.flatMap((each) => ["--ro-bind-try", each, each]),
    ...shown.flatMap((each) => ["--ro-bind", each, each]),
    "--remount-ro",
    "/",
    "--chdir",
    directories[0] ?? "/",
    "--",
    ...command,
  ];
}

async function probe(): Promise<OsSandboxUse> {
  if (process.platform !== "linux") return { used: false, reason: "Bubblewrap works on Linux only." };
  if (!places.some((each) => existsSync(each))) return { used: false, reason: "Bubblewrap is not installed." };
  const node = installedNode();
  const [program, ...words] = inOsSandbox([], [node.file, "--version"]);
  try {
    await promisify(execFile)(program, words, { env: node.env, timeout: probeTakesMs, killSignal: "SIGKILL" });
    return { used: true };
  } catch (error) {
    const text = error instanceof Error ? error.message.split("\n").slice(1).join(" ").trim() : "";
    return { used: false, reason: `Bubblewrap does not work here: ${text === "" ? String(error) : text}` };
  }
}
