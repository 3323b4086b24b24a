/** How files differ between two moments, as sorted paths relative to the workspace. */
export interface FileChanges {
  /** Files, directories and links that are only there afterwards. */
  readonly created: readonly string[];
  /** Those whose content, permissions, target or kind differ. Directories: only if their permissions differ. */
  readonly changed: readonly string[];
  /** Those that were only there before. */
  readonly deleted: readonly string[];
}

/** A file that other programs may run, or obey, where the workspace is used next. */
export interface RiskyFile {
  /** Relative to the workspace. */
  readonly path: string;
  /** A sentence that says what would run it. */
  readonly reason: string;
}

/** What changed in the workspace during a run. */
export interface WorkspaceChanges extends FileChanges {
  /**
   * Those among `created` and `changed` that others may run later, outside the fence, and those of which it is not known
   * whether they were there before; at most 1,000.
   */
  readonly risky: readonly RiskyFile[];
  /**
   * The lists are not complete: there were too many files or changes, some could not be looked at, or there was no time or
   * place left to look. What the lists have is true. Default: they are complete.
   */
  readonly truncated?: true;
}
