import { statSync } from "node:fs";
import type { FileOwner } from "@fenced/executor-kit";
import { answered } from "../daemon/docker-error.ts";
import type { Daemon } from "../daemon/find-daemon.ts";
import type { HostWorkspace } from "../workspace/host-workspace.ts";

/** The user that owns nothing: `nobody` on Linux. */
const nobody: FileOwner = { uid: 65_534, gid: 65_534 };

/** Who the blocks run as. */
export interface ContainerUser {
  /** As the API takes it; `undefined`: the image's. */
  readonly name: string | undefined;
  /** Whom what this process, root, makes in the work directory has to be given, so that the user can write to it. */
  readonly giveTo?: FileOwner;
}

/**
 * Who the blocks run as where the work directory is a directory of this host: its owner, so that what they write belongs
 * to the caller. Only if the caller is root, and the directory is the executor's own, is it given to nobody.
 */
export function userForBind(
  { user, hardened }: { readonly user: string | undefined; readonly hardened: boolean },
  workspace: HostWorkspace,
  rootless: boolean,
): ContainerUser {
  const caller = process.getuid?.();
  const own = caller === 0 && !workspace.given;
  if (user !== undefined) {
    const [, uid, gid = uid] = /^(\d+)(?::(\d+))?$/.exec(user) ?? [];
    const numbers = { uid: Number(uid), gid: Number(gid) };
    return { name: user, ...(caller === 0 && uid !== undefined ? { giveTo: numbers } : {}) };
  }
  // A rootless daemon's root is nobody but the user who started it.
  if (rootless) return { name: "0:0" };
  if (caller === undefined) return { name: hardened ? nameOf(nobody) : undefined };
  if (caller !== 0) return { name: `${caller}:${process.getgid?.() ?? caller}` };
  if (own && hardened) return { name: nameOf(nobody), giveTo: nobody };
  return { name: nameOf(workspace.owner), giveTo: workspace.owner };
}

/** Who the blocks run as where the work directory is a volume. */
export function userForVolume({
  user,
  hardened,
}: {
  readonly user: string | undefined;
  readonly hardened: boolean;
}): ContainerUser {
  return { name: user ?? (hardened ? nameOf(nobody) : undefined) };
}

/** Whether the daemon itself runs without root, and its containers' root is an ordinary user. */
export async function isRootless({ docker, socketPath }: Daemon): Promise<boolean> {
  // A rootless daemon's socket belongs to its user, so that most need not be asked: that would take longer than a block.
  if (socketPath !== undefined && statSync(socketPath, { throwIfNoEntry: false })?.uid === 0) return false;
  const info: unknown = await answered(docker.info(), "info");
  const security: unknown =
    typeof info === "object" && info !== null ? Reflect.get(info, "SecurityOptions") : undefined;
  return Array.isArray(security) && security.some((each) => typeof each === "string" && each.includes("rootless"));
}

function nameOf({ uid, gid }: FileOwner): string {
  return `${uid}:${gid}`;
}
