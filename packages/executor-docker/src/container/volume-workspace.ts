import path from "node:path";
import {
  type BackendFiles,
  blockSource,
  type BlockRun,
  type DirectoryFiles,
  type FileContent,
  RemoteFiles,
  type SessionDirectories,
} from "@fenced/executor-kit";
import {
  type BlockFile,
  type ListedFile,
  type PlaceWorkspace,
  SupervisedFiles,
  type Supervisor,
} from "@fenced/executor-kit/supervisor";

/** Where a volume is. */
interface VolumePlace {
  /** Its path in the container. */
  readonly path: string;
  /** Path of Python in the container. */
  readonly python: string;
  readonly supervisor: Supervisor;
  /** Keep the files of blocks that they do not name. */
  readonly keepFiles: boolean;
}

/**
 * A work directory that this host cannot see: a volume, for example of a remote daemon. Files travel through the
 * supervisor. If the user gave a directory, it is copied into the volume at the start, and its changes are copied back
 * after each block.
 */
export class VolumeWorkspace implements PlaceWorkspace {
  readonly path: string;
  readonly filesStay: boolean = false;
  readonly files: BackendFiles;
  readonly #keepFiles: boolean;
  readonly #access: SupervisedFiles;
  readonly #directories: SessionDirectories;
  readonly #hostFiles: DirectoryFiles;
  /** Files that exist on both sides, with their state when they were copied. */
  readonly #copied = new Map<string, string>();
  #settling: Promise<string | undefined> = Promise.resolve(undefined);
  #waiting: Promise<string | undefined> | undefined;

  constructor(directories: SessionDirectories, { path: inContainer, python, supervisor, keepFiles }: VolumePlace) {
    this.path = inContainer;
    const settings = { python, workspace: inContainer, filePrefix: directories.filePrefix };
    this.#access = new SupervisedFiles({ ...settings, supervisor: async () => supervisor });
    this.files = new RemoteFiles(this.#access, (file) => directories.isOwn(file));
    this.#keepFiles = keepFiles;
    this.#directories = directories;
    this.#hostFiles = directories.files();
  }

  /** Copies the user's directory into the volume, and to the user's directory what only the volume has. */
  async prepare(): Promise<void> {
    if (!this.#directories.given) return;
    const sent = (await this.#hostFiles.list()).map(({ path: file, size }) => this.#onHost(file, size));
    await this.#access.putAll(sent);
    const names = new Set(sent.map(({ path: file }) => file));
    for await (const { path: file, state } of this.#access.states(".")) {
      if (state !== undefined && names.has(file)) this.#copied.set(file, state);
    }
    await this.settle();
  }

  /** A file that is read through descriptors, because another executor's code may use the same directory. */
  #onHost(file: string, size: number): { readonly path: string; readonly content: FileContent } {
    const read = () => firstBytes(this.#hostFiles.content(file), size);
    return { path: file, content: { size, [Symbol.asyncIterator]: read } };
  }

  async writeBlock({ language, code, filename }: BlockRun, extension: string): Promise<BlockFile> {
    const content = blockSource(language, code);
    if (filename === undefined) {
      const name = this.#directories.newName(extension);
      return { path: `${this.path}/${name}`, sent: { name, content, keep: this.#keepFiles } };
    }
    await this.files.write(filename, content);
    const onHost = path.join(this.#directories.workDirectory, filename);
    return { path: `${this.path}/${filename}`, ...(this.#directories.given ? { onHost } : {}) };
  }

  hideFunctionsPackage(): void {
    this.#directories.claimFunctionsPackage();
  }

  /** Copies what the block wrote to the user's directory. Bounded in time and size. */
  async settle(): Promise<string | undefined> {
    if (!this.#directories.given) return undefined;
    // A block that ends during a copy waits for the next copy, together with all others that end meanwhile.
    this.#waiting ??= this.#settling.then(() => {
      this.#waiting = undefined;
      this.#settling = this.#copyBack();
      return this.#settling;
    });
    return this.#waiting;
  }

  /**
   * Copies what has changed; returns a sentence about what was not copied. Never rejects, since the block's result
   * matters more.
   */
  async #copyBack(): Promise<string | undefined> {
    try {
      const deadline = performance.now() + copyMs;
      const { changed, removed, problems } = await this.#changes();
      for (let at = 0; at < changed.length; at += batchFiles) {
        for await (const { file, content } of this.#access.contents(changed.slice(at, at + batchFiles))) {
          if (content === "unreadable") problems.push(`${file.path} cannot be read`);
          if (typeof content === "string") continue;
          await this.#hostFiles.put(file.path, until(deadline, content));
          this.#copied.set(file.path, file.state);
        }
      }
      for (const file of removed) {
        this.#copied.delete(file);
        await this.#hostFiles.remove(file).catch(() => {});
      }
      return problems.length === 0 ? undefined : notCopied(problems);
    } catch (error) {
      return notCopied([`not all files were copied: ${error instanceof Error ? error.message : String(error)}`]);
    }
  }

  /** What differs from the last copy, as far as it fits into one. */
  async #changes(): Promise<{ changed: ListedFile[]; removed: string[]; problems: string[] }> {
    const [changed, problems, seen]: [ListedFile[], string[], Set<string>] = [[], [], new Set()];
    const unlisted = new Set<string>();
    let [room, characters] = [mostCopied, 0];
    for await (const file of this.#access.states(".")) {
      if (this.#directories.isOwn(file.path)) continue;
      seen.add(file.path);
      characters += file.path.length;
      const tooMany = seen.size > mostFiles || characters > mostCharacters;
      if (tooMany) throw new Error(`there are more than ${mostFiles} files`);
      if (file.state === undefined) {
        unlisted.add(file.path);
        problems.push(`${file.path} cannot be read, so nothing there was copied or removed`);
        continue;
      }
      if (this.#copied.get(file.path) === file.state) continue;
      if (file.size > room) {
        const size = `${Math.ceil(file.size / 1_048_576)} MiB`;
        problems.push(
          `${file.path} (${size}) did not fit into the ${mostCopied / 1_048_576} MiB that are copied after a block`,
        );
        continue;
      }
      room -= file.size;
      changed.push(file);
    }
    const isGone = (file: string) => !seen.has(file) && !isWithin(file, unlisted);
    return { changed, problems, removed: [...this.#copied.keys()].filter(isGone) };
  }
}

/**
 * Maximum bytes that one copy brings to the host; the code decides how much there is, and a sparse file costs it
 * nothing.
 */
const mostCopied = 536_870_912;
/** Maximum number of files that one copy looks at, and of characters in their names. */
const [mostFiles, mostCharacters] = [200_000, 67_108_864];
/** Files in one request, whose names the container has to hold. */
const batchFiles = 1000;
/** Time limit for one copy in milliseconds. */
const copyMs = 120_000;

/** Whether a file is one of the paths, or below one of them. */
function isWithin(file: string, paths: ReadonlySet<string>): boolean {
  if (paths.size === 0) return false;
  for (let at = file.length; at > 0; at = file.lastIndexOf("/", at - 1)) if (paths.has(file.slice(0, at))) return true;
  return false;
}

async function* until(deadline: number, content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  for await (const piece of content) {
    if (performance.now() > deadline) throw new Error(`it took more than ${copyMs / 1000} s`);
    yield piece;
  }
}

/** The content may be longer by now. */
async function* firstBytes(chunks: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array, void, void> {
  let left = size;
  for await (const chunk of chunks) {
    const piece = chunk.subarray(0, left);
    left -= piece.length;
    if (piece.length > 0) yield piece;
    if (left === 0) return;
  }
}

function notCopied(problems: readonly string[]): string {
  const more = problems.length > 5 ? `; and ${problems.length - 5} more` : "";
  const said = problems.slice(0, 5).join("; ") + more;
  return `\nThe work directory is not up to date: ${said}. Remove what is not needed, or write it to /tmp.\n`;
}
