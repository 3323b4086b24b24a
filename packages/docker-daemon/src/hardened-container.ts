import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { ContainerCreateOptions } from "dockerode";
import { runtimeFilters, runtimeKernel } from "./container-runtime.ts";
import { dockerReason } from "./daemon-calls.ts";
import { type DaemonFacts, warnAbout } from "./daemon-facts.ts";
import type { DaemonClient } from "./find-daemon.ts";
import { seccompProfile, userSpaceSeccompProfile } from "./seccomp-profile.ts";

/**
 * Creates a container with a system call filter that keeps code from leaving setuid programs in a directory of the
 * host, where they would give other users its owner's rights. The filter replaces the daemon's own. If the daemon's
 * administrator chose another one, or it has none, the container is created without ours and this process warns once
 * (`FENCED_DOCKER_SETUID`). In gVisor, each container needs it, because no thread starts with the daemon's own.
 *
 * @param shares - the container is hardened and shares a directory with the host.
 * @param create - creates the container with the given options.
 */
export async function createWithFilter<T>(
  daemon: DaemonClient,
  facts: DaemonFacts,
  options: ContainerCreateOptions,
  shares: boolean,
  create: (options: ContainerCreateOptions) => Promise<T>,
): Promise<T> {
  const runtime = options.HostConfig?.Runtime;
  const filters = runtimeFilters(facts.runtimes, runtime);
  const inUserSpace = runtimeKernel(facts.runtimes, runtime) === "user-space";
  if (!shares && !(inUserSpace && filters && facts.filter === "replaceable")) return create(options);
  if (!filters) {
    const name = runtime ?? facts.runtimes.byDefault ?? "that it uses";
    warnUnfiltered(
      daemon,
      `the runtime ${name} may ignore system call filters (gVisor does without \`--oci-seccomp\`)`,
    );
  }
  if (facts.filter !== "replaceable") {
    const why = facts.filter === "chosen" ? "its administrator chose another system call filter" : "it has no seccomp";
    return createUnfiltered(daemon, why, () => create(options));
  }
  const profile = inUserSpace ? userSpaceSeccompProfile : seccompProfile;
  try {
    return await create(withFilter(options, profile));
  } catch (error) {
    if (!wantsFile(error)) throw error;
  }
  // Podman's API takes the name of a file on its own host, which it reads while it creates the container.
  const directory = await mkdtemp(path.join(await privateDirectory(), "fenced-seccomp-"));
  try {
    const file = path.join(directory, "profile.json");
    await writeFile(file, profile);
    return await create(withFilter(options, file));
  } catch (error) {
    if (!wantsFile(error)) throw error;
    return await createUnfiltered(daemon, "it does not see this machine's files", () => create(options));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/**
 * A directory in which only this user can write, and code in other containers neither: a caller may have given them the
 * temporary directory, where they could replace the filter before Podman reads it.
 */
async function privateDirectory(): Promise<string> {
  const user = process.getuid?.();
  for (const place of [process.env["XDG_RUNTIME_DIR"] ?? `/run/user/${user}`, "/run"]) {
    const { uid, mode } = await stat(place).catch(() => ({ uid: -1, mode: 0 }));
    if (uid === user && (mode & 0o022) === 0) return place;
  }
  return tmpdir();
}

function withFilter(options: ContainerCreateOptions, profile: string): ContainerCreateOptions {
  const { HostConfig: host = {} } = options;
  const given: unknown = host.SecurityOpt;
  const security: readonly unknown[] = Array.isArray(given) ? given : [];
  return { ...options, HostConfig: { ...host, SecurityOpt: [...security, `seccomp=${profile}`] } };
}

function wantsFile(error: unknown): boolean {
  return /opening seccomp profile failed/.test(dockerReason(error));
}

function createUnfiltered<T>(daemon: DaemonClient, why: string, create: () => Promise<T>): Promise<T> {
  warnUnfiltered(daemon, why);
  return create();
}

function warnUnfiltered(daemon: DaemonClient, why: string): void {
  warnAbout(
    daemon,
    "FENCED_DOCKER_SETUID",
    `Code in containers of this daemon can leave setuid programs in mounted directories, because ${why}. Mount only directories that other users of the machine cannot enter.`,
  );
}
