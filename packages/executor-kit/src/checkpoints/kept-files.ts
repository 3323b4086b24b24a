import type { CheckpointPart, CheckpointStore } from "@fenced/core";

/** What the last checkpoint has of a file. */
export interface KeptFile {
  readonly parts: readonly CheckpointPart[];
  /** See `TreeEntry.state`; `undefined`: the file has to be read again. */
  readonly state: string | undefined;
}

/** The last checkpoint of an executor in a store. */
export interface LastCheckpoint {
  /** `undefined` if there is none. */
  readonly id: string | undefined;
  /** By path. */
  readonly files: ReadonlyMap<string, KeptFile>;
}

const nothing: LastCheckpoint = { id: undefined, files: new Map() };

/** What the last checkpoint of a session has, so that the next one reads and stores only what has changed. */
export class KeptFiles {
  #store: CheckpointStore | undefined;
  #last = nothing;

  in(store: CheckpointStore): LastCheckpoint {
    return store === this.#store ? this.#last : nothing;
  }

  remember(store: CheckpointStore, last: LastCheckpoint): void {
    this.#store = store;
    this.#last = last;
  }

  /** Call this when the session is another one, since states say nothing about its files. */
  forgetStates(): void {
    const files = [...this.#last.files].map(([path, { parts }]) => [path, { parts, state: undefined }] as const);
    this.#last = { ...this.#last, files: new Map(files) };
  }
}
