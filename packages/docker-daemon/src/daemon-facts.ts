import { InvalidInputError } from "@fenced/core";
import { z } from "zod";
import type { ContainerLimits } from "./container-config.ts";
import { type ContainerRuntimes, readRuntime } from "./container-runtime.ts";
import { answered } from "./daemon-calls.ts";
import type { DaemonClient } from "./find-daemon.ts";

/** What a daemon reports about itself that decides how containers are created. */
export interface DaemonFacts {
  /** The daemon runs without root, so its containers' root is an ordinary user. */
  readonly rootless: boolean;
  /** The limits that it accepts and then ignores, because it cannot use the kernel's control groups. */
  readonly ignoredLimits: readonly ("memoryBytes" | "pidsLimit" | "cpus")[];
  /** Its system call filter: its own, which may be replaced, one that its administrator chose, or none that we can set. */
  readonly filter: "replaceable" | "chosen" | "none";
  readonly runtimes: ContainerRuntimes;
}

const daemonInfo = z.object({
  SecurityOptions: z.array(z.string()).nullish(),
  /** Podman's. */
  Rootless: z.boolean().nullish(),
  Architecture: z.string().nullish(),
  CgroupDriver: z.string().nullish(),
  CgroupVersion: z.string().nullish(),
  MemoryLimit: z.boolean().nullish(),
  PidsLimit: z.boolean().nullish(),
  CpuCfsQuota: z.boolean().nullish(),
  Runtimes: z
    .record(
      z.string(),
      z.object({
        path: z.string().nullish(),
        runtimeType: z.string().nullish(),
        runtimeArgs: z.array(z.string()).nullish(),
      }),
    )
    .nullish(),
  DefaultRuntime: z.string().nullish(),
});

const known = new Map<string, Promise<DaemonFacts>>();

/** Asks a daemon about itself; only once for each address, because the answer takes longer than a block. */
export async function daemonFacts(daemon: DaemonClient): Promise<DaemonFacts> {
  const address = JSON.stringify(daemon.transport);
  const asked = known.get(address) ?? askFacts(daemon);
  known.set(address, asked);
  try {
    return await asked;
  } catch (error) {
    known.delete(address);
    throw error;
  }
}

function isNamed(text: string | null | undefined): boolean {
  return text !== undefined && text !== null && text !== "";
}

async function askFacts({ docker }: DaemonClient): Promise<DaemonFacts> {
  const info = daemonInfo.parse(await answered<unknown>(docker.info(), "info"));
  const security = info.SecurityOptions ?? [];
  const rootless = info.Rootless === true || security.some((each) => each.includes("rootless"));
  // Rootless daemons need version 2 of control groups; Podman does not mention that it ignores the limits.
  const noGroups = info.CgroupDriver === "none" || (rootless && info.CgroupVersion === "1");
  const ignores = (enforced: boolean | null | undefined): boolean => noGroups || enforced === false;
  return {
    rootless,
    ignoredLimits: [
      ...(ignores(info.MemoryLimit) ? (["memoryBytes"] as const) : []),
      ...(ignores(info.PidsLimit) ? (["pidsLimit"] as const) : []),
      ...(ignores(info.CpuCfsQuota) ? (["cpus"] as const) : []),
    ],
    filter: filterOf(security, info.Architecture ?? ""),
    runtimes: {
      listed: Object.entries(info.Runtimes ?? {}).map(([name, { path, runtimeType, runtimeArgs }]) =>
        // A type without a path is one of containerd's own, as is a name without either.
        readRuntime(name, [path, runtimeType].find(isNamed) ?? name, runtimeArgs ?? []),
      ),
      byDefault: info.DefaultRuntime ?? undefined,
      areRegistered: info.Rootless === undefined,
    },
  };
}

function filterOf(security: readonly string[], architecture: string): DaemonFacts["filter"] {
  const seccomp = security.find((each) => each.startsWith("name=seccomp"));
  if (seccomp === undefined || !/^(?:x86_64|amd64|aarch64|arm64)$/.test(architecture)) return "none";
  const profile = /profile=(.*)/.exec(seccomp)?.[1] ?? "default";
  return ["default", "builtin", "unconfined"].includes(profile) ? "replaceable" : "chosen";
}

const warned = new Set<string>();

/** Warns once for each daemon. */
export function warnAbout(daemon: DaemonClient, code: string, message: string): void {
  const key = code + JSON.stringify(daemon.transport);
  if (warned.has(key)) return;
  warned.add(key);
  process.emitWarning(message, { code });
}

/**
 * Checks that a daemon enforces the limits of a container.
 *
 * @throws InvalidInputError if it would ignore a limit that the caller set. If it would ignore a default limit, this
 * process warns once (`FENCED_DOCKER_LIMITS`).
 */
export function checkLimits(daemon: DaemonClient, facts: DaemonFacts, limits: ContainerLimits): void {
  const [first] = facts.ignoredLimits;
  if (first === undefined) return;
  const why = facts.rootless
    ? "a daemon without root needs version 2 of control groups, delegated to its user"
    : "the daemon cannot use the kernel's control groups";
  const refused = facts.ignoredLimits.find((name) => limits[name] !== undefined);
  if (refused !== undefined) {
    throw new InvalidInputError(`This daemon ignores \`${refused}\`: ${why}`, {
      remedy: "Use a machine with control groups version 2 or a daemon that runs as root, or leave the option out.",
    });
  }
  if (limits.hardened === false) return;
  const names = facts.ignoredLimits.filter((name) => name !== "cpus").join("` and `");
  if (names === "") return;
  warnAbout(
    daemon,
    "FENCED_DOCKER_LIMITS",
    `Containers of this daemon have no limits on \`${names}\`: ${why}. Code can use up the machine's memory and processes.`,
  );
}
