/** An object of a storage. */
export interface StoredObject {
  readonly key: string;
  /** Size in bytes. */
  readonly size: number;
  /** When it was last written, in milliseconds since 1970, by the storage's own clock. */
  readonly modifiedAt: number;
}

/**
 * Named objects: files of a directory, or objects of a bucket. What one program has written, every other one sees at
 * once. Keys are lower-case words, digits, `-` and `.`, in up to two folders with `/`.
 */
export interface ObjectStorage {
  /** Names it in messages: `the directory /data/checkpoints`. */
  readonly name: string;
  /** Writes a whole object or nothing; replaces an existing one. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Reads an object; `undefined` if there is none, `"larger"` if it has more than `maxBytes`. */
  get(key: string, maxBytes: number): Promise<Uint8Array | "larger" | undefined>;
  /** An object's size in bytes; `undefined` if there is none. */
  size(key: string): Promise<number | undefined>;
  /** Objects whose keys begin with a folder, in any order. Those written or deleted meanwhile may be missing. */
  list(folder: string): AsyncIterable<StoredObject>;
  /** Deletes an object, if it exists. */
  delete(key: string): Promise<void>;
  /** Makes sure that all that was put survives a loss of power. Default: it does as soon as `put` resolves. */
  flush?(): Promise<void>;
  /** Removes what killed programs left behind. @param now - the time by the storage's own clock. */
  tidy?(now: number): Promise<void>;
}
