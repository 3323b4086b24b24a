/** A file of a skill. */
export interface SkillFile {
  /** Relative to the skill's directory, with `/` as the separator. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
}

/** A skill as it was when it was read last. */
export interface Skill {
  /** Lower-case letters, digits and single hyphens, at most 64; the name of its directory, too. */
  readonly name: string;
  /** What it does and when to use it, as its author wrote it: at most 1,024 characters, of any kind. */
  readonly description: string;
  readonly license?: string;
  /** What it needs: programs, packages, network. */
  readonly compatibility?: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Absolute path of its directory on this host. */
  readonly source: string;
  /** All of its files, `SKILL.md` included, sorted by path. */
  readonly files: readonly SkillFile[];
  /** The SHA-256 of the list of files, which changes with any of them: `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
}

/** A directory that was not accepted as a skill. */
export interface SkillWarning {
  /** Absolute path. */
  readonly path: string;
  /** Why, and what to do, in one sentence each. */
  readonly message: string;
}
