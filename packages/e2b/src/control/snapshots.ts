import * as z from "zod";
import { E2BFailure } from "./e2b-failure.ts";
import { type Kept, keptSchema } from "./known-sandbox.ts";

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
  createdAt: z.number(),
  kept: keptSchema,
});

/** What a client may call a snapshot. */
export const snapshotName: z.ZodType<string> = z
  .string()
  .regex(/^[\w.-]{1,128}$/, "must have 1 to 128 letters, digits, hyphens, dots and underscores");

/** All snapshots of a server. */
export class Snapshots {
  readonly #snapshots = new Map<string, Snapshot>();

  /** By its id or its name, perhaps with the tag that E2B's ids end with. */
  find(owner: string, named: string): Snapshot | undefined {
    const name = named.replace(/:default$/, "");
    const own = this.#snapshots.get(name);
    return own?.owner === owner ? own : this.all(owner).find((each) => each.name === name);
  }

  all(owner: string): readonly Snapshot[] {
    return [...this.#snapshots.values()].filter((each) => each.owner === owner);
  }

  /** @returns the one that had its name, which has none any more. */
  add(snapshot: Snapshot): Snapshot | undefined {
    const { name, owner, id } = snapshot;
    const before = name === undefined ? undefined : this.all(owner).find((each) => each.name === name);
    const unnamed = before && before.id !== id ? { ...before, name: undefined } : undefined;
    if (unnamed) this.#snapshots.set(unnamed.id, unnamed);
    this.#snapshots.set(id, snapshot);
    return unnamed;
  }

  /** @throws E2BFailure if there is none. */
  remove(owner: string, named: string): Snapshot {
    const snapshot = this.find(owner, named);
    if (!snapshot) throw new E2BFailure(404, `snapshot "${named}" not found`);
    this.#snapshots.delete(snapshot.id);
    return snapshot;
  }
}
