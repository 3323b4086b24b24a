import { readFileSync } from "node:fs";
import { BackendUnavailableError } from "@fenced/core";
import { findProgram } from "../languages/find-languages.ts";

/** The device files of the host that bubblewrap shows in `/dev`. */
export const deviceNames: readonly string[] = ["null", "zero", "full", "random", "urandom", "tty"];

/**
 * Mounts paths read-only on themselves; for a device file that concerns its mode and owner, not what programs write to it. A
 * user namespace lets nobody clear the other two options, which `/dev` often has.
 */
const program = `left=$1 mount=$0; shift; while [ "$left" -gt 0 ]; do "$mount" -o rbind,ro,nosuid,noexec "$1" "$1" || exit 1; shift; left=$((left - 1)); done; exec "$@"`;
const systemPath = "/usr/bin:/bin:/usr/sbin:/sbin";

/**
 * Wraps bubblewrap's command for root. The kernel lets root use root's files even without any capability: code could
 * otherwise change the mode of the host's `/dev/null`. It starts where the device files are mounted read-only, which
 * bubblewrap cannot do by itself. `enter.py` checks the outcome.
 *
 * @throws BackendUnavailableError if a program that is needed is missing.
 */
export function withReadOnlyDevices(
  command: readonly [string, ...string[]],
  searchPath: string,
): [string, ...string[]] {
  const [unshare = "", mount = ""] = ["unshare", "mount"].map((name) => {
    const found = findProgram(name, `${searchPath}:${systemPath}`);
    if (found !== undefined) return found;
    throw new BackendUnavailableError(`As root, the sandbox needs the program \`${name}\`, which is not on the PATH`, {
      remedy: "Install util-linux, or run this program as an ordinary user.",
    });
  });
  const user = mayMount() ? [] : ["--user", "--map-root-user"];
  const mounted = mountedDevices();
  const places = mounted.length < deviceNames.length ? ["/dev", ...mounted] : mounted;
  return [
    unshare,
    ...user,
    "--mount",
    "--",
    "/bin/sh",
    "-c",
    program,
    mount,
    String(places.length),
    ...places,
    ...command,
  ];
}

/** Device files that are mounts of their own, as in a container without privileges: the options of `/dev` do not apply to them. */
function mountedDevices(): string[] {
  const mounts = new Set(
    readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4]),
  );
  return deviceNames.map((each) => `/dev/${each}`).filter((each) => mounts.has(each));
}

/** True if this process has `CAP_SYS_ADMIN`; root in a container usually does not. */
function mayMount(): boolean {
  const [, effective = "0"] = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return (BigInt(`0x${effective}`) & (1n << 21n)) !== 0n;
}
