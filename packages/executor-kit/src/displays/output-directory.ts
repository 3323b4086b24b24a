import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdtemp, open, readlink, realpath, rename, rm, rmdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { makeDirectories } from "@fenced/core/runtime";
import { Leash } from "../processes/leash.ts";
import { assertInPlace } from "../workspace/file-replacement.ts";
import { PinnedDirectory } from "../workspace/pinned-directory.ts";

/** Operating systems, too, follow only about forty links in a path. */
const mostLinks = 40;
const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * The directory in which rich outputs are saved: a given one that stays, or a temporary one. Code may be able to write
 * to it, so nothing there is trusted: on Linux, files are accessed through the open directory, and each one is created
 * under a new name and then moved over whatever has its final name, which is never opened.
 */
export class OutputDirectory {
  readonly #directory: string;
  readonly #pinned: PinnedDirectory;
  readonly #leash: Leash | undefined;
  readonly #made: boolean;

  private constructor(
    directory: string,
    pinned: PinnedDirectory,
    { leash, made = false }: { readonly leash?: Leash; readonly made?: boolean },
  ) {
    this.#directory = directory;
    this.#pinned = pinned;
    this.#leash = leash;
    this.#made = made;
  }

  /**
   * Opens a directory, absolute or relative to the working directory. Creates it if it is missing; `close` then removes
   * it if it is still empty.
   */
  static async open(given: string): Promise<OutputDirectory> {
    const directory = path.resolve(given);
    try {
      const made = await makeDirectories(directory);
      return new OutputDirectory(directory, await PinnedDirectory.open(await realpath(directory)), { made });
    } catch (cause) {
      throw new BackendUnavailableError(`The output directory ${given} cannot be used: ${String(cause)}`, {
        remedy: "Set `outputDir` to a directory that you can write to.",
        option: "outputDir",
        cause,
      });
    }
  }

  /** Creates a temporary directory, which `close` deletes. */
  static async temporary(): Promise<OutputDirectory> {
    const directory = await realpath(await mkdtemp(path.join(tmpdir(), "fenced-displays-")));
    const mark = { name: "FENCED_DISPLAYS", value: randomUUID() };
    return new OutputDirectory(directory, await PinnedDirectory.open(directory), {
      leash: new Leash({ mark, remove: [directory] }),
    });
  }

  /** Writes a file, replacing anything of that name; returns its absolute path. */
  async put(name: string, content: string | Uint8Array): Promise<string> {
    const temporary = this.#pinned.entry(`.${name}-${randomUUID()}`);
    try {
      const file = await open(temporary, newFile, 0o666);
      try {
        await file.writeFile(content);
        await rename(temporary, this.#pinned.entry(name));
        await assertInPlace(file, this.#pinned.entry(name));
      } finally {
        await file.close();
      }
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
    return path.join(this.#directory, name);
  }

  /** Deletes a temporary directory, and one that was created but not used. */
  async close(): Promise<void> {
    await this.#pinned[Symbol.asyncDispose]();
    if (this.#made) await rmdir(this.#directory).catch(() => {});
    if (!this.#leash) return;
    await rm(this.#directory, { recursive: true, force: true }).catch(() => {});
    await this.#leash.release();
  }
}

/**
 * Rejects an output directory that code in a container could reach: in the directory that is bound into the container,
 * or on a path that leads through it, be it through a link or another name for the same directory.
 *
 * @param given - the output directory; `undefined` for a temporary one.
 * @param bound - the directory of this host that the container's code can write to.
 * @throws InvalidInputError
 */
export async function assertApart(given: string | undefined, bound: string): Promise<void> {
  const { dev, ino } = await stat(bound, { bigint: true });
  for await (const directory of directoriesOn(path.resolve(given ?? tmpdir()))) {
    if (directory.dev !== dev || directory.ino !== ino) continue;
    const which = given === undefined ? `directory for temporary files, ${tmpdir()},` : `outputDir ${given}`;
    throw new InvalidInputError(`The ${which} is in or leads through ${bound}, which the code can change`, {
      remedy: "Set `outputDir` to a directory outside `workDir`.",
      option: "outputDir",
    });
  }
}

/** Every directory that a path leads through, as far as it exists; follows links one by one. */
async function* directoriesOn(absolute: string): AsyncGenerator<{ readonly dev: bigint; readonly ino: bigint }> {
  const { root } = path.parse(absolute);
  const rest = absolute.slice(root.length).split(path.sep);
  let at = root;
  yield await lstat(at, { bigint: true });
  for (let links = 0; ;) {
    const part = rest.shift();
    if (part === undefined) return;
    const next = path.join(at, part);
    const stats = await lstat(next, { bigint: true }).catch(() => undefined);
    if (!stats) return;
    yield stats;
    if (!stats.isSymbolicLink()) at = next;
    else if (++links > mostLinks) return;
    else {
      const target = await readlink(next);
      if (path.isAbsolute(target)) at = path.parse(target).root;
      rest.unshift(...target.split(path.sep));
    }
  }
}
