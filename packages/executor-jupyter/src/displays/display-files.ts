import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { MimeBundle } from "@fenced/core";
import { Leash } from "@fenced/executor-kit";

/** File name endings of what is saved; what is only text to read is not. */
const endings: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/gif": "gif",
  "image/webp": "webp",
  "image/bmp": "bmp",
  "image/svg+xml": "svg",
  "application/pdf": "pdf",
  "text/html": "html",
  "text/latex": "tex",
  "text/markdown": "md",
  "application/json": "json",
  "application/geo+json": "geojson",
  "audio/mpeg": "mp3",
  "audio/wav": "wav",
  "video/mp4": "mp4",
};

/** The directory in which rich outputs are saved: a given one that stays, or one that is deleted with the session. */
export class DisplayFiles {
  readonly #given: string | undefined;
  #directory: Promise<string> | undefined;
  #temporary: { readonly directory: string; readonly leash: Leash } | undefined;

  /** @param given - where to save; made if missing. Default: a temporary directory. */
  constructor(given: string | undefined) {
    this.#given = given === undefined ? undefined : path.resolve(given);
  }

  /** A name for one output that no other has: without its ending. */
  newName(): string {
    return `display-${randomUUID().slice(0, 13)}`;
  }

  /**
   * Saves a bundle, a file for each type that makes one.
   *
   * @param name - the files' name without ending; one that is there already is written over.
   * @returns the files' absolute paths.
   */
  async save(bundle: MimeBundle, name: string): Promise<string[]> {
    const files: string[] = [];
    for (const [type, content] of Object.entries(bundle)) {
      const ending = endingOf(type);
      if (ending === undefined) continue;
      const file = path.join(await (this.#directory ??= this.#open()), `${name}.${ending}`);
      const plain = typeof content === "string" || content instanceof Uint8Array;
      await writeFile(file, plain ? content : JSON.stringify(content, undefined, 2));
      files.push(file);
    }
    return files;
  }

  /** Deletes a temporary directory. */
  async close(): Promise<void> {
    await this.#directory?.catch(() => {});
    const temporary = this.#temporary;
    this.#directory = undefined;
    this.#temporary = undefined;
    if (!temporary) return;
    await rm(temporary.directory, { recursive: true, force: true });
    await temporary.leash.release();
  }

  async #open(): Promise<string> {
    if (this.#given !== undefined) {
      await mkdir(this.#given, { recursive: true });
      return this.#given;
    }
    const directory = await realpath(await mkdtemp(path.join(tmpdir(), "fenced-displays-")));
    const mark = { name: "FENCED_DISPLAYS", value: randomUUID() };
    this.#temporary = { directory, leash: new Leash({ mark, remove: [directory] }) };
    return directory;
  }
}

/** Vendors' JSON types keep their names: `application/vnd.plotly.v1+json` makes `plotly.json`. */
function endingOf(type: string): string | undefined {
  const known = endings[type];
  if (known !== undefined) return known;
  const vendor = /^application\/vnd\.([a-z0-9-]+)[\w.-]*\+json$/.exec(type)?.[1];
  return vendor === undefined ? undefined : `${vendor}.json`;
}
