import { mkdir, readlink } from "node:fs/promises";
import path from "node:path";
import { ServiceFailure } from "../service-failure.ts";
import { hasCode, PinnedDirectory } from "./pinned-directory.ts";

/** The root of the files, as code sees it. */
const mountPoint = "/mnt/data";
/** The longest path to a file, in directories: each is held open on the way. */
export const deepest = 64;

/** The directories from a session's root to one below it, each held open. */
export class Way implements AsyncDisposable {
  readonly #open: [PinnedDirectory, ...PinnedDirectory[]];
  readonly #names: string[] = [];

  private constructor(root: PinnedDirectory) {
    this.#open = [root];
  }

  static async from(root: string): Promise<Way> {
    return new Way(await PinnedDirectory.open(root));
  }

  get top(): PinnedDirectory {
    return this.#open.at(-1) ?? this.#open[0];
  }

  get depth(): number {
    return this.#names.length;
  }

  /** The path of the top, from the session's root. */
  get path(): string {
    return `/${this.#names.join("/")}`;
  }

  /**
   * Follows `parts`, and any symbolic links among them as the code would.
   *
   * @returns if `stopAtLast`, the name of the last part after following its links; it is not entered.
   */
  async walk(
    parts: readonly string[],
    { create, stopAtLast }: { readonly create: boolean; readonly stopAtLast: boolean },
  ): Promise<string | undefined> {
    const left = [...parts];
    for (let links = 0; left.length > 0;) {
      const part = left.shift() ?? "";
      if (part === "" || part === ".") continue;
      if (part === "..") {
        await this.leave();
        continue;
      }
      const target = await this.#linkTarget(part);
      if (target !== undefined) {
        if (++links > 40) throw outside();
        if (path.isAbsolute(target)) await this.#toRoot(target);
        left.unshift(...target.replace(/^\/mnt\/data(?=\/|$)/, "").split("/"));
        continue;
      }
      if (stopAtLast && left.every((each) => each === "" || each === ".")) return part;
      if (create) await this.#make(part);
      await this.enter(part);
    }
    if (stopAtLast) throw new ServiceFailure(400, "NotAFile", "The path names a directory.");
    return undefined;
  }

  async enter(name: string): Promise<void> {
    if (this.depth >= deepest) throw new ServiceFailure(400, "InvalidPath", "The path has too many directories.");
    this.#open.push(await this.top.open(name));
    this.#names.push(name);
  }

  async leave(): Promise<void> {
    if (this.#names.pop() === undefined) throw outside();
    await this.#open.pop()?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#open) await each[Symbol.asyncDispose]();
  }

  async #linkTarget(name: string): Promise<string | undefined> {
    try {
      return await readlink(this.top.entry(name));
    } catch (error) {
      if (hasCode(error, "EINVAL", "ENOENT", "UNKNOWN")) return undefined;
      throw error;
    }
  }

  async #toRoot(target: string): Promise<void> {
    if (target !== mountPoint && !target.startsWith(`${mountPoint}/`)) throw outside();
    while (this.depth > 0) await this.leave();
  }

  async #make(name: string): Promise<void> {
    await mkdir(this.top.entry(name)).catch((error: unknown) => {
      if (!hasCode(error, "EEXIST")) throw error;
    });
  }
}

/** The refusal of a path that leads out of the session's files. */
export function outside(): ServiceFailure {
  return new ServiceFailure(400, "InvalidPath", `The path is outside ${mountPoint}.`);
}
