/** Bytes of a part of a file; only a file's last part has fewer. */
export const checkpointPartBytes = 1_048_576;

/** A part of a file's content, as a store keeps it. */
export interface CheckpointPart {
  /** The SHA-256 of its bytes, in hexadecimal. */
  readonly hash: string;
  /** Its size in bytes: at most `checkpointPartBytes`. */
  readonly size: number;
  /** Which of several copies in the store; absent: the first. */
  readonly copy?: string;
}

/** What every entry has. */
interface Entry {
  /**
   * Path relative to the workspace, normalized, with `/` as the separator. A byte that is not UTF-8 is a lone
   * surrogate, U+DC80 to U+DCFF.
   */
  readonly path: string;
  /** Permissions: the lowest nine bits. */
  readonly mode: number;
  /** Time of the last modification in milliseconds since 1970, possibly with a fraction. */
  readonly modifiedAt: number;
}

/** A regular file in a checkpoint. */
export interface CheckpointFile extends Entry {
  readonly type: "file";
  readonly size: number;
  /** Its content, in order. */
  readonly parts: readonly CheckpointPart[];
}

/** A directory in a checkpoint. */
export interface CheckpointDirectory extends Entry {
  readonly type: "directory";
}

/** A symbolic link in a checkpoint. It leads to something in the workspace, or would if that existed. */
export interface CheckpointLink extends Entry {
  readonly type: "link";
  /** Path relative to the link's directory. */
  readonly target: string;
}

/** What a checkpoint has of a workspace, sorted by path: by the code units of JavaScript's strings. */
export type CheckpointEntry = CheckpointFile | CheckpointDirectory | CheckpointLink;

/** A variable in a checkpoint. */
export interface CheckpointVariable {
  readonly name: string;
  /** How it was written; `module`: it is the name of an imported module. */
  readonly format: "pickle" | "cloudpickle" | "dill" | "module";
  readonly size: number;
  /** Its written form, which only a place that runs the code may read. */
  readonly parts: readonly CheckpointPart[];
}

/** The variables of a stateful Python session. */
export interface CheckpointVariables {
  /** The interpreter, with its minor version: `cpython 3.11`. Only the same one can read them. */
  readonly interpreter: string;
  readonly variables: readonly CheckpointVariable[];
}

/** Something that is not in a checkpoint or did not come back from it, or not as it was. */
export interface CheckpointIssue {
  /** `more`: one entry at the end, if there are too many to list. */
  readonly kind: "file" | "variable" | "more";
  /** The file's path, or the variable's name; empty for `more`. */
  readonly name: string;
  /** Why, as a sentence. */
  readonly reason: string;
}
