import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, open, realpath, rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { errorCode, PinnedDirectory, removeTree } from "@fenced/executor-kit";
import { digestOf, readSkillTree } from "./read-skill-tree.ts";
import type { SkillFile } from "./skill.ts";

/** A skill's files, with the digest of them all. */
export interface SkillContent {
  readonly files: readonly SkillFile[];
  readonly digest: string;
}

/**
 * Copies of skills in a directory of this program's own, one for each content, so that what a person agreed to is what
 * runs: nobody can swap a file between the question and the run.
 */
export class SkillCopies implements AsyncDisposable {
  /** Absolute path, without links: the directory to share with executors, read-only. */
  readonly directory: string;
  readonly #parent: string;

  private constructor(parent: string) {
    this.#parent = parent;
    this.directory = path.join(parent, "skills");
  }

  static async create(): Promise<SkillCopies> {
    const copies = new SkillCopies(await realpath(await mkdtemp(path.join(tmpdir(), "fenced-skills-"))));
    // The parent keeps other users of this host out; in a container, another user may have to read it.
    await mkdir(copies.directory);
    await chmod(copies.directory, 0o755);
    return copies;
  }

  /** Where the copy of a content is, or would be. */
  placeOf(name: string, { digest }: Pick<SkillContent, "digest">): string {
    return path.join(this.directory, this.relativePlaceOf(name, { digest }));
  }

  /** The same, relative to `directory` and with `/` as the separator. */
  relativePlaceOf(name: string, { digest }: Pick<SkillContent, "digest">): string {
    // All of it: two contents may be made whose digests begin alike, and one of them would run with the other's consent.
    return `${digest.slice("sha256:".length)}/${name}`;
  }

  /** Reads a skill's directory, and copies it unless there is a copy of the same content. */
  async take(name: string, source: string): Promise<SkillContent> {
    const now = await contentOf(source);
    if (await this.#has(name, now)) return now;
    return this.#copy(name, source);
  }

  /** Reads a file of a copy. */
  async read(name: string, content: SkillContent, file: SkillFile): Promise<Buffer> {
    await using handle = await open(path.join(this.placeOf(name, content), file.path), "r");
    // Of this program's own making, and measured when it was made.
    return await handle.readFile();
  }

  /** Deletes the copy of a content. */
  async drop(name: string, content: Pick<SkillContent, "digest">): Promise<void> {
    await removeTree(path.dirname(this.placeOf(name, content)));
  }

  /** Whether the copy is there, and is what it was: where code runs without a fence, it can change it. */
  async #has(name: string, { digest }: SkillContent): Promise<boolean> {
    const place = this.placeOf(name, { digest });
    try {
      if ((await contentOf(place, true)).digest === digest) return true;
    } catch (error) {
      if (errorCode(error) === "ENOENT") return false;
    }
    await this.drop(name, { digest });
    return false;
  }

  async #copy(name: string, source: string): Promise<SkillContent> {
    const fresh = path.join(this.directory, `.${randomUUID()}`);
    const top = path.join(fresh, name);
    try {
      await mkdir(fresh);
      await using directory = await PinnedDirectory.open(source);
      const files = await readSkillTree(directory, {
        enter: (below) => mkdir(path.join(top, below)),
        file: (below, pieces, executable) => writeCopy(path.join(top, below), pieces, executable),
        leave: (below) => chmod(path.join(top, below), 0o555),
      });
      const content = { files, digest: digestOf(files) };
      const place = path.dirname(this.placeOf(name, content));
      await chmod(fresh, 0o755);
      await rename(fresh, place).catch(async (error: unknown) => {
        // Another call has made the same copy meanwhile.
        if (!["ENOTEMPTY", "EEXIST", "EPERM"].includes(errorCode(error) ?? "")) throw error;
      });
      return content;
    } finally {
      await removeTree(fresh);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeTree(this.#parent);
  }
}

async function contentOf(place: string, all = false): Promise<SkillContent> {
  await using directory = await PinnedDirectory.open(place);
  const files = await readSkillTree(directory, { all });
  return { files, digest: digestOf(files) };
}

async function writeCopy(place: string, pieces: AsyncIterable<Uint8Array>, executable: boolean): Promise<void> {
  await using handle = await open(place, "wx", 0o600);
  for await (const piece of pieces) await handle.writeFile(piece);
  await handle.chmod(executable ? 0o555 : 0o444);
}
