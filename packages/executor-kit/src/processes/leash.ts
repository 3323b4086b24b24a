import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { functionsPackageMarker } from "../functions/javascript-setup-program.ts";

/** What a leash does when this program ends without having released it. */
export interface LeashOptions {
  /** Kills every process whose environment has this variable. Linux only. */
  readonly mark: { readonly name: string; readonly value: string };
  /** Deletes these files and directories. Absolute paths. */
  readonly remove: readonly string[];
  /** Deletes all files and directories whose paths begin like this. Absolute paths. */
  readonly removePrefixes?: readonly string[];
  /** Deletes this directory if the file `functionsPackageMarker` in it says the value of `mark`. Absolute path. */
  readonly removeOwned?: string;
}

/**
 * Ends what a session started if this program ends first, in whatever way, `kill -9` included: a tiny shell program
 * in a session of its own, which waits for the end of its standard input. It costs a millisecond to start and a
 * megabyte to keep, and does not keep Node alive. On Windows there is none.
 */
export class Leash {
  readonly #shell: ChildProcess | undefined;

  constructor({ mark, remove, removePrefixes = [], removeOwned = "" }: LeashOptions) {
    if (process.platform === "win32") return;
    const words = [mark.name, mark.value, removeOwned, String(removePrefixes.length), ...removePrefixes, ...remove];
    this.#shell = spawn("/bin/sh", ["-c", leashProgram, "fenced-leash", ...words], {
      cwd: "/",
      detached: true,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
      stdio: ["pipe", "ignore", "ignore"],
    });
    // A system without a shell has no leash; blocks still run and stop() still cleans up.
    this.#shell.on("error", () => {});
    this.#shell.unref();
    if (this.#shell.stdin instanceof net.Socket) this.#shell.stdin.unref();
  }

  /** Ends the leash; it does nothing any more. */
  async release(): Promise<void> {
    const shell = this.#shell;
    if (shell?.pid === undefined || shell.exitCode !== null || shell.signalCode !== null) return;
    shell.ref();
    const ended = once(shell, "exit");
    shell.kill("SIGKILL");
    await ended;
    shell.stdin?.destroy();
  }
}

/** Arguments: the mark, a directory that may be owned, how many prefixes follow, the prefixes, what to remove. Looks again while it found something. */
const leashProgram = `
trap '' HUP INT TERM
while read -r line; do :; done
mark=$1=$2 prefixes=$4
[ "$(cat "$3/${functionsPackageMarker}" 2> /dev/null)" != "$2" ] || rm -rf -- "$3"
shift 4
for round in 1 2 3 4 5 6 7 8 9; do
  found=$(grep -lsazxF -e "$mark" /proc/[0-9]*/environ)
  [ -n "$found" ] || break
  for place in $found; do
    place=\${place#/proc/}
    kill -KILL "\${place%/environ}"
  done
done
while [ "$prefixes" -gt 0 ]; do
  rm -rf -- "$1"*
  shift
  prefixes=$((prefixes - 1))
done
[ $# -eq 0 ] || rm -rf -- "$@" || { chmod -R u+rwx -- "$@"; rm -rf -- "$@"; }
`;
