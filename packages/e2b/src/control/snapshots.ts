import * as z from "zod";
import { E2BFailure } from "./e2b-failure.ts";
import { type EgressRules, egressRulesSchema } from "./egress-rules.ts";
import type { KeptCheckpoints } from "./kept-checkpoints.ts";
import { type Kept, keptSchema, type KnownSandbox, momentSchema } from "./known-sandbox.ts";
import { newId } from "./new-token.ts";
import type { StateDirectory } from "./state-directory.ts";

/** The files of a sandbox at one moment, from which new sandboxes start. */
export interface Snapshot {
  readonly id: string;
  readonly owner: string;
  /** A name that leads to it; `undefined`: only its id does. */
  readonly name?: string | undefined;
  readonly sandboxId: string;
  /** The template whose executor its sandboxes have. */
  readonly base: string;
  readonly env: Readonly<Record<string, string>>;
  /** What its client wanted of the sandbox's network, and wants of those that start from it. */
  readonly rules: EgressRules;
  readonly createdAt: number;
  readonly kept: Kept;
}

/** See `Snapshot`. */
export const snapshotSchema: z.ZodType<Snapshot> = z.object({
  id: z.string(),
  owner: z.string(),
  name: z.string().optional(),
  sandboxId: z.string(),
  base: z.string(),
  env: z.record(z.string(), z.string()),
  rules: egressRulesSchema,
  createdAt: momentSchema,
  kept: keptSchema,
});

/** What a client may call a snapshot. */
export const snapshotName: z.ZodType<string> = z
  .string()
  .regex(/^[\w.-]{1,128}$/, "must have 1 to 128 letters, digits, hyphens, dots and underscores");

/** All snapshots of a server. */
export class Snapshots {
  readonly #checkpoints: KeptCheckpoints;
  readonly #state: StateDirectory | undefined;
  readonly #snapshots = new Map<string, Snapshot>();

  constructor(checkpoints: KeptCheckpoints, state: StateDirectory | undefined) {
    this.#checkpoints = checkpoints;
    this.#state = state;
  }

  /** By its id or its name, perhaps with the tag that E2B's ids end with. */
  find(owner: string, named: string): Snapshot | undefined {
    const name = named.replace(/:default$/, "");
    const own = this.#snapshots.get(name);
    return own?.owner === owner ? own : this.#byName(owner, name);
  }

  all(owner: string): readonly Snapshot[] {
    return [...this.#snapshots.values()].filter((each) => each.owner === owner);
  }

  /** Takes over what an earlier server has left. */
  load(snapshots: readonly Snapshot[]): void {
    for (const snapshot of snapshots.toSorted((one, other) => one.createdAt - other.createdAt)) {
      this.#snapshots.set(snapshot.id, snapshot);
      this.#checkpoints.share(snapshot.kept);
    }
  }

  /** Adds one of a sandbox, which takes its name from the one that had it, and releases the checkpoint if that fails. */
  async add({ settings, rules }: KnownSandbox, kept: Kept, name?: string): Promise<Snapshot> {
    const { id: sandboxId, owner, base, env } = settings;
    const named = { ...(name !== undefined && { name }) };
    const snapshot: Snapshot = {
      id: newId("snap"),
      owner,
      sandboxId,
      base,
      env,
      rules,
      createdAt: Date.now(),
      kept,
      ...named,
    };
    try {
      await this.#state?.write("snapshots", snapshot.id, snapshot);
    } catch (error) {
      this.#checkpoints.release(kept);
      throw error;
    }
    const before = name === undefined ? undefined : this.#byName(owner, name);
    this.#snapshots.set(snapshot.id, snapshot);
    if (before) {
      const unnamed = { ...before, name: undefined };
      this.#snapshots.set(before.id, unnamed);
      await this.#state?.write("snapshots", before.id, unnamed);
    }
    return snapshot;
  }

  /** @throws E2BFailure if there is none. */
  async delete(owner: string, named: string): Promise<void> {
    const snapshot = this.find(owner, named);
    if (!snapshot) throw new E2BFailure(404, `snapshot "${named}" not found`);
    const { id, kept } = snapshot;
    this.#snapshots.delete(id);
    await this.#state?.remove("snapshots", id);
    this.#checkpoints.release(kept);
  }

  /** The last of a name: a server that was killed may have left two. */
  #byName(owner: string, name: string): Snapshot | undefined {
    return this.all(owner).findLast((each) => each.name === name);
  }
}
