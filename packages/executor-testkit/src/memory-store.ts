import { createHash } from "node:crypto";
import { CheckpointError, type CheckpointStore, type NewCheckpoint } from "@fenced/core";

/** Keeps checkpoints in this program's memory. */
export class MemoryStore implements CheckpointStore {
  /** The parts of files, by their hashes. A case may damage them. */
  readonly parts: Map<string, Uint8Array> = new Map();
  readonly #checkpoints = new Map<string, NewCheckpoint>();

  async begin(): ReturnType<CheckpointStore["begin"]> {
    let newBytes = 0;
    return {
      has: async ({ hash }) => this.parts.has(hash),
      put: async (bytes) => {
        const hash = hashOf(bytes);
        if (!this.parts.has(hash)) newBytes += bytes.length;
        this.parts.set(hash, bytes.slice());
        return { hash, size: bytes.length };
      },
      commit: async (checkpoint) => {
        const id = hashOf(Buffer.from(String(this.#checkpoints.size)));
        this.#checkpoints.set(id, { ...checkpoint, entries: [...checkpoint.entries] });
        return { id, newBytes };
      },
      [Symbol.asyncDispose]: async () => {},
    };
  }

  async open(id: string): ReturnType<CheckpointStore["open"]> {
    const checkpoint = this.#checkpoints.get(id);
    if (!checkpoint) throw new CheckpointError(`There is no checkpoint ${id}`, { remedy: "Use another id." });
    const { entries, variables, incomplete } = checkpoint;
    return {
      info: { id, createdAt: new Date(), files: 0, bytes: 0, variables: [] },
      variables,
      incomplete,
      async *entries() {
        yield* entries;
      },
      content: async ({ hash }) => {
        const bytes = this.parts.get(hash);
        if (bytes && hashOf(bytes) === hash) return bytes;
        throw new CheckpointError("A part of the checkpoint is damaged", { remedy: "Use another one." });
      },
    };
  }

  async list(): ReturnType<CheckpointStore["list"]> {
    return [...this.#checkpoints.keys()].map((id) => ({
      id,
      createdAt: new Date(),
      files: 0,
      bytes: 0,
      variables: [],
    }));
  }

  async delete(id: string): Promise<void> {
    this.#checkpoints.delete(id);
  }

  async sweep(): ReturnType<CheckpointStore["sweep"]> {
    return { removed: 0, bytes: 0, waiting: 0 };
  }
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
