/** Something in a workspace. */
export interface TreeEntry {
  /** Path relative to the workspace, normalized; see `pathOfBytes`. */
  readonly path: string;
  /** `other`: a pipe, a socket or a device; `unknown`: it exists, but could not be looked at. */
  readonly type: "file" | "directory" | "link" | "other" | "unknown";
  /** The lowest nine bits: its permissions. */
  readonly mode: number;
  /** Milliseconds since 1970. */
  readonly modifiedAt: number;
  readonly size: number;
  /**
   * Differs after each change of the file, which code cannot prevent; `undefined` if the place cannot say so, or the
   * file may have changed without a difference, because it changed just now.
   */
  readonly state?: string | undefined;
  /**
   * Size, inode and time of the last change, which code cannot set; `undefined` if the place cannot say so. A change within
   * one tick of the file system's clock does not change it: see `settlesIn`.
   */
  readonly identity?: string | undefined;
  /** Milliseconds until every change changes `identity`; `undefined`: every change does so already. */
  readonly settlesIn?: number | undefined;
  /** It runs with the rights of its owner or group (setuid, setgid), if it is a file. Default: it does not. */
  readonly isPrivileged?: boolean;
  /** Where a link leads, as it was written. */
  readonly target?: string | undefined;
}

/** A file to read. */
export interface WantedFile {
  readonly path: string;
  /** Stop reading beyond this size. */
  readonly size: number;
  /** The SHA-256 of its parts when they were last read, in hexadecimal. */
  readonly known: readonly string[];
}

/** A part of a file; `"same"`: the one at this place in `known`. */
type FilePart = Uint8Array | "same";

/** How reading a file ended. */
export interface FileEnd {
  /** See `TreeEntry.state`; that of the content which was read. */
  readonly state: string | undefined;
  /** It changed while it was read, or is larger than what was wanted of it. */
  readonly isChanged: boolean;
  /** The file's size afterwards, for those who read it again. */
  readonly size: number;
}

/** A file's content: parts of `checkpointPartBytes`, of which only the last one may be smaller. Their memory is the receiver's. */
export type FileParts = AsyncGenerator<FilePart, FileEnd, void>;

/** Receives the content of one file, or why it cannot be read. It resolves when it needs no more of it. */
export type FileVisit<File extends WantedFile> = (
  file: File,
  content: FileParts | "gone" | "unreadable",
) => Promise<void>;

/** What to create. */
export interface PlannedEntry {
  readonly path: string;
  readonly type: "file" | "directory" | "link";
  readonly mode: number;
  readonly modifiedAt: number;
  /** A link's target. */
  readonly target: string;
  readonly size: number;
  /** A file's content, checked. `"hole"`: `checkpointPartBytes` of zeros, or what is left of the file. Read it once. */
  readonly content: () => AsyncIterable<Uint8Array | "hole">;
}

/** What to create, parents before what is in them. */
export interface TreePlan {
  /** Each call begins anew. Throws if the checkpoint is damaged. */
  entries(): AsyncIterable<PlannedEntry>;
}

/** What a place cannot keep of an entry. */
export type TreeLoss = (path: string, reason: string) => void;

/** The files of a workspace with all that a checkpoint keeps of them. */
export interface WorkspaceTree {
  /**
   * Lists all entries, in any order, but those of the executor itself.
   *
   * @param add - throws if there are too many.
   */
  list(add: (entry: TreeEntry) => void): Promise<void>;
  /** Reads files, one after another or several at once. */
  read<File extends WantedFile>(files: readonly File[], visit: FileVisit<File>): Promise<void>;
  /**
   * Creates everything in `plan`, over what is there already. Changes nothing unless the whole plan could be read.
   *
   * @throws InvalidInputError if a file is where the plan has a directory, or the other way round.
   */
  create(plan: TreePlan, lose: TreeLoss): Promise<void>;
}
