import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, open, realpath, rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { errorCode, PinnedDirectory, removeTree } from "@fenced/executor-kit";
import { digestOf, readSkillTree } from "./read-skill-tree.ts";
import type { SkillFile } from "./skill.ts";

/** A skill's files, with the digest of them all. */
interface SkillContent {
  readonly files: readonly SkillFile[];
  readonly digest: string;
}

/** Reads what a copy says; throws if it is not accepted. @param top - the copy's directory. */
type ReadCopy<Said> = (top: string, files: readonly SkillFile[]) => Promise<Said>;

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

  /** Where the copy of a content is, relative to `directory` and with `/` as the separator. */
  relativePlaceOf(name: string, { digest }: Pick<SkillContent, "digest">): string {
    // All of it: two contents may be made whose digests begin alike, and one of them would run with the other's consent.
    return `${digest.slice("sha256:".length)}/${name}`;
  }

  /**
   * Reads a skill's directory, and copies it unless there is a copy of the same content.
   *
   * @param read - called before executors can see the copy; if it throws, there is none.
   * @returns the content, with what `read` returned.
   */
  async take<Said>(name: string, source: string, read: ReadCopy<Said>): Promise<Said & SkillContent> {
    const now = await contentOf(source);
    if (!(await this.holds(name, now))) return this.#copy(name, source, read);
    return { ...(await read(this.#placeOf(name, now), now.files)), ...now };
  }

  /** Reads a file of a copy. */
  async read(name: string, content: Pick<SkillContent, "digest">, file: SkillFile): Promise<Buffer> {
    return readCopied(this.#placeOf(name, content), file);
  }

  /** Whether the copy is there, and is what it was: where code runs without a fence, it can change it. */
  async holds(name: string, { digest }: Pick<SkillContent, "digest">): Promise<boolean> {
    const place = this.#placeOf(name, { digest });
    try {
      if ((await contentOf(place, true)).digest === digest) return true;
    } catch (error) {
      if (errorCode(error) === "ENOENT") return false;
    }
    await removeTree(path.dirname(place));
    return false;
  }

  #placeOf(name: string, content: Pick<SkillContent, "digest">): string {
    return path.join(this.directory, this.relativePlaceOf(name, content));
  }

  async #copy<Said>(name: string, source: string, read: ReadCopy<Said>): Promise<Said & SkillContent> {
    const fresh = path.join(this.#parent, randomUUID());
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
      const said = await read(top, files);
      const place = path.dirname(this.#placeOf(name, content));
      await chmod(fresh, 0o755);
      await rename(fresh, place).catch(async (error: unknown) => {
        // Another call has made the same copy meanwhile.
        if (!["ENOTEMPTY", "EEXIST", "EPERM"].includes(errorCode(error) ?? "")) throw error;
      });
      return { ...said, ...content };
    } finally {
      await removeTree(fresh);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeTree(this.#parent);
  }
}

/** Reads a file of a copy. @param top - the copy's directory. */
export async function readCopied(top: string, file: SkillFile): Promise<Buffer> {
  await using handle = await open(path.join(top, file.path), "r");
  // Of this program's own making, and measured when it was made.
  return await handle.readFile();
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
