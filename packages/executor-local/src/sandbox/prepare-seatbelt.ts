import { mkdir } from "node:fs/promises";
import path from "node:path";
import { InvalidInputError, type NetworkPolicy } from "@fenced/core";
import type { SessionDirectories } from "@fenced/executor-kit";
import type { WarmOptions } from "@fenced/executor-kit/supervisor";
import type { VirtualEnv } from "../virtual-env.ts";
import { findInstallations } from "./find-installations.ts";
import { seatbeltProfile } from "./seatbelt-profile.ts";
import { resolveShares } from "./shared-paths.ts";

/** The settings of a session's macOS sandbox. */
export interface SeatbeltWishes {
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  readonly network: NetworkPolicy;
  readonly memoryBytes: number | undefined;
  readonly pidsLimit: number | undefined;
  readonly warm: false | WarmOptions | undefined;
}

/** How blocks enter the sandbox. */
export interface Seatbelt {
  /** Wraps a command so that it starts in the sandbox. */
  readonly wrap: (command: readonly [string, ...string[]]) => [string, ...string[]];
  /** Blocks' environment variables, which override those of this program. */
  readonly env: Readonly<Record<string, string>>;
}

/** Directories of the session that code may change. */
const ownDirectories = ["home", "tmp", "functions", "packages"] as const;

/**
 * Makes a session's profile, and creates its home and temporary directories.
 *
 * @param programs - the programs that the languages need, and the `PATH` to search.
 * @throws InvalidInputError if something cannot be shared, or for a limit that macOS cannot enforce.
 */
export async function prepareSeatbelt(
  wishes: SeatbeltWishes & { readonly virtualEnv: VirtualEnv | undefined },
  search: { readonly programs: readonly string[]; readonly searchPath: string },
  { sessionDirectory, workDirectory, identity }: SessionDirectories,
): Promise<Seatbelt> {
  if (wishes.memoryBytes !== undefined || wishes.pidsLimit !== undefined) {
    throw new InvalidInputError("`memoryBytes` and `pidsLimit` are not supported on macOS", {
      remedy: "Leave them out, or use a container, with @fenced/executor-docker.",
    });
  }
  if (typeof wishes.network === "object") {
    throw new InvalidInputError("The macOS sandbox cannot allow individual hosts (`network.allow`)", {
      remedy: 'Set `network` to "none" or "open", or use a container, with @fenced/executor-docker.',
    });
  }
  if (wishes.warm !== undefined && wishes.warm !== false) {
    throw new InvalidInputError("`warm` is not supported on macOS", {
      remedy: "Leave it out, or use a container, with @fenced/executor-docker.",
    });
  }
  const shared = await resolveShares({ ...wishes, workDirectory, identity });
  const writable = shared.filter(({ mode }) => mode === "write").map(({ source }) => source);
  const { places } = await findInstallations({ ...search, virtualEnv: wishes.virtualEnv, untrusted: writable });
  const own = ownDirectories.map((name) => path.join(sessionDirectory, name));
  for (const each of own) await mkdir(each, { recursive: true });
  const readable = shared.filter(({ mode }) => mode === "read").map(({ source }) => source);
  const rules = { network: wishes.network, readable: [...places, ...readable], writable: [...writable, ...own] };
  const profile = seatbeltProfile(rules);
  const [home = "", temporary = ""] = own;
  return {
    // As text, because code may be able to change a file: the session's directory may be in a shared one.
    wrap: (command) => ["/usr/bin/sandbox-exec", "-p", profile, ...command],
    env: { HOME: home, TMPDIR: temporary },
  };
}
