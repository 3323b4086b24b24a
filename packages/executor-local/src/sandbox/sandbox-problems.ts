import { readFileSync } from "node:fs";
import { BackendUnavailableError } from "@fenced/core";

const unfenced = "Nothing was run, since it would have run without a sandbox.";

/** @returns the error for a machine without bubblewrap. */
export function noBubblewrap(): BackendUnavailableError {
  return new BackendUnavailableError(`bubblewrap is not installed: there is no \`bwrap\` on the PATH. ${unfenced}`, {
    remedy: "Install it (Debian, Ubuntu: `apt install bubblewrap`; Fedora: `dnf install bubblewrap`).",
  });
}

/** @returns the error for an operating system without a supported sandbox. */
export function unsupportedSystem(): BackendUnavailableError {
  return new BackendUnavailableError(`There is no OS sandbox for ${process.platform} on ${process.arch}. ${unfenced}`, {
    remedy: "Use Linux on x64 or arm64, or macOS; elsewhere use a container, with @fenced/executor-docker.",
  });
}

/**
 * Explains why a sandbox did not start, from what bubblewrap said and what the system forbids.
 *
 * @param said - standard error of bubblewrap and of what it started.
 */
export function explainStart(said: string, cause?: unknown): BackendUnavailableError {
  const { problem, remedy } = explanation(said);
  const words = said.trim() === "" ? "" : ` (${said.trim().split("\n").slice(-3).join("; ").slice(0, 500)})`;
  return new BackendUnavailableError(`The sandbox could not be started: ${problem}${words}. ${unfenced}`, {
    remedy,
    cause,
  });
}

/** A problem and its remedy. */
interface Explanation {
  readonly problem: string;
  readonly remedy: string;
}

const containerCure =
  "Run this program's container with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined` (Podman: `unmask=ALL` for the second; with AppArmor also `apparmor=unconfined`), or use @fenced/executor-docker over the host's daemon.";

function explanation(said: string): Explanation {
  if (/python3: No such file|execvp python3|No module named|ModuleNotFoundError/.test(said)) {
    return {
      problem: "it needs Python 3.8 or later as `python3`",
      remedy: "Install it (Debian: `apt install python3`).",
    };
  }
  if (/Unknown option/.test(said)) {
    return {
      problem: "this bubblewrap is too old",
      remedy: "Install bubblewrap 0.8 or later (Debian 12, Ubuntu 24.04).",
    };
  }
  if (/mount proc/.test(said)) {
    return {
      problem: "this container hides parts of /proc, so another /proc cannot be mounted",
      remedy: containerCure,
    };
  }
  const [, checked] = /^fenced: (.*)$/m.exec(said) ?? [];
  if (checked !== undefined) {
    return {
      problem: checked,
      remedy: checked.includes("replaced")
        ? "Code elsewhere may be writing there: share only directories that no other session can write to."
        : "Run this program as an ordinary user, or report this.",
    };
  }
  if (/unshare|namespace|hostname|uid map|RTM_NEWADDR|pivot_root|[Mm]ount|clone/.test(said)) {
    return namespaceProblem(said);
  }
  return {
    problem: "bubblewrap or the program in it failed",
    remedy:
      "Check whether `bwrap --unshare-all --ro-bind / / --proc /proc true` works here, and please report this if it does.",
  };
}

/** Finds out what forbids namespaces. */
function namespaceProblem(said: string): Explanation {
  const none = isSetting("/proc/sys/user/max_user_namespaces", "0");
  if (none || isSetting("/proc/sys/kernel/unprivileged_userns_clone", "0") || /ENOSPC|No space left/.test(said)) {
    return {
      problem: "user namespaces are switched off here",
      remedy:
        "As root: `sysctl -w user.max_user_namespaces=15000`, and on Debian 10 `sysctl -w kernel.unprivileged_userns_clone=1`. Inside another sandbox, allow namespaces there, or rely on that sandbox alone.",
    };
  }
  if (isFiltered() || /pivot_root/.test(said)) {
    return { problem: "this container, or another seccomp filter, forbids namespaces", remedy: containerCure };
  }
  if (isSetting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") || /RTM_NEWADDR|uid map/.test(said)) {
    return {
      problem: "AppArmor prevents bubblewrap from using user namespaces",
      remedy:
        "As root, put `abi <abi/4.0>, include <tunables/global> profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }` into /etc/apparmor.d/bwrap and run `apparmor_parser -r /etc/apparmor.d/bwrap`, or: `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`.",
    };
  }
  return {
    problem: "the system does not let bubblewrap create its namespaces",
    remedy:
      "Find out which security module or seccomp filter this program runs under, and allow user namespaces there.",
  };
}

function isSetting(file: string, value: string): boolean {
  return contentOf(file).trim() === value;
}

/** Container engines and service managers filter the system calls of what they start. */
function isFiltered(): boolean {
  return /^Seccomp:\s+2$/m.test(contentOf("/proc/self/status"));
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
