import { randomUUID } from "node:crypto";
import type { Display, MimeBundle } from "@fenced/core";
import { bundleSize } from "../output/bundle-size.ts";
import type { BlockEvent } from "../run/block-run.ts";
import { errorCode } from "../workspace/workspace-errors.ts";
import type { DisplayMessage } from "./display-messages.ts";
import { mimeBundle } from "./mime-bundle.ts";
import { assertApart, OutputDirectory } from "./output-directory.ts";
import { readableText } from "./readable-text.ts";

/** A rich output as kernels send it. */
export interface RichOutput {
  readonly data: unknown;
  /** The kernel's name for a display that it may update. */
  readonly displayId?: string;
  readonly isUpdate: boolean;
  /** Its text is not printed. Default: false. */
  readonly isQuiet?: boolean;
}

/** Limits for one block: the number of rich outputs, updates included, and their size; see `bundleSize`. */
const [mostDisplays, mostBytes] = [10_000, 268_435_456];
/** How many earlier displays can still be updated, and the maximum length of their ids. */
const [mostNamed, longestId] = [10_000, 1000];

/** File extensions of the types that are saved; `text/plain` is not. */
const endings: ReadonlyMap<string, string> = new Map([
  ["image/png", "png"],
  ["image/jpeg", "jpg"],
  ["image/webp", "webp"],
  ["image/gif", "gif"],
  ["image/bmp", "bmp"],
  ["image/svg+xml", "svg"],
  ["application/pdf", "pdf"],
  ["text/html", "html"],
  ["text/latex", "tex"],
  ["text/markdown", "md"],
  ["application/json", "json"],
  ["application/geo+json", "geojson"],
  ["audio/mpeg", "mp3"],
  ["audio/wav", "wav"],
  ["video/mp4", "mp4"],
]);
/** If the same picture comes in several of these formats, only the first becomes a file. */
const pictures = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];

/** Saves a session's rich outputs, and keeps track of those that may still be updated. */
export class DisplayBoard {
  readonly #outputDir: string | undefined;
  #directory: Promise<OutputDirectory> | undefined;
  /** Maps display ids to file names, since a later block may update an earlier block's display. */
  readonly #names = new Map<string, string>();

  private constructor(outputDir: string | undefined) {
    this.#outputDir = outputDir;
  }

  /**
   * @param outputDir - where to save; created if missing. Default: a temporary directory, created when there is
   * something to save.
   * @param bound - directories of this host that otherwise isolated code can change.
   * @throws InvalidInputError if outputs would be saved where that code can change them.
   */
  static async open(
    outputDir: string | undefined,
    bound: string | readonly string[] | undefined,
  ): Promise<DisplayBoard> {
    for (const each of [bound ?? []].flat()) await assertApart(outputDir, each);
    const board = new DisplayBoard(outputDir);
    if (outputDir !== undefined) await board.#open();
    return board;
  }

  /** The displays of one block. */
  forBlock(): BlockDisplays {
    return new BlockDisplays(this);
  }

  /** The name of an output's files, without the extension: a new one, or that of the display that it updates. */
  nameOf({ displayId, isUpdate }: RichOutput): string {
    const known = displayId === undefined ? undefined : this.#names.get(displayId);
    const name = isUpdate && known !== undefined ? known : `display-${randomUUID().slice(0, 13)}`;
    if (displayId === undefined || displayId.length > longestId) return name;
    this.#names.delete(displayId);
    this.#names.set(displayId, name);
    const [oldest] = this.#names.keys();
    if (this.#names.size > mostNamed && oldest !== undefined) this.#names.delete(oldest);
    return name;
  }

  /** Saves a bundle as one file for each supported type; returns their absolute paths. */
  async save(bundle: MimeBundle, name: string): Promise<string[]> {
    const files: string[] = [];
    const picture = pictures.find((type) => Object.hasOwn(bundle, type));
    for (const [type, content] of Object.entries(bundle)) {
      const ending = pictures.includes(type) && type !== picture ? undefined : endingOf(type);
      if (ending === undefined) continue;
      const isPlain = typeof content === "string" || content instanceof Uint8Array;
      const directory = await this.#open();
      files.push(await directory.put(`${name}.${ending}`, isPlain ? content : JSON.stringify(content)));
    }
    return files;
  }

  /** Deletes a temporary directory. */
  async close(): Promise<void> {
    const directory = await this.#directory?.catch(() => undefined);
    this.#directory = undefined;
    await directory?.close();
  }

  #open(): Promise<OutputDirectory> {
    const given = this.#outputDir;
    return (this.#directory ??= given === undefined ? OutputDirectory.temporary() : OutputDirectory.open(given));
  }
}

/** Turns the rich outputs of one block into events, within limits. */
export class BlockDisplays {
  readonly #board: DisplayBoard;
  /** The newest state of each display of this block, by the name of its files. */
  readonly #shown = new Map<string, Display>();
  /** Those whose newest state has not been printed, by the same names. */
  #updated = new Set<string>();
  /** The same, as it was when the code asked to clear its output once there is more; absent if it did not. */
  #toClear: ReadonlySet<string> | undefined;
  #count = 0;
  #bytes = 0;
  #truncated = false;
  #full = false;

  constructor(board: DisplayBoard) {
    this.#board = board;
  }

  /** Whether outputs were left out. */
  get truncated(): boolean {
    return this.#truncated;
  }

  /** The events for a message of an interpreter. */
  async take(message: DisplayMessage): Promise<BlockEvent[]> {
    if ("clear" in message) return this.clear(message.wait);
    return this.cleared("leftOut" in message ? this.leaveOut(message.leftOut) : await this.events(message));
  }

  /**
   * The events for an output: its text for readers of `stdout`, and the whole output as a display. An output that is
   * updated, such as a progress bar, is printed at first and, by `end`, as it is at last.
   */
  async events(output: RichOutput): Promise<BlockEvent[]> {
    const data = mimeBundle(output.data);
    const text = output.isQuiet === true ? [] : printed(data);
    this.#count += 1;
    this.#bytes += bundleSize(data);
    if (this.#count > mostDisplays || this.#bytes > mostBytes) return [...text, ...this.#leaveOutRest()];
    const name = this.#board.nameOf(output);
    const { files, problem } = await this.#saved(data, name);
    const display: Display = { data, files };
    const replaces = this.#shown.get(name);
    if (output.displayId !== undefined) this.#shown.set(name, display);
    if (!replaces) return [...text, { type: "display", display }, ...problem];
    this.#updated.add(name);
    return [{ type: "display", display, replaces }, ...problem];
  }

  /** What a reader of text gets of a bundle; `undefined` for nothing. */
  textOf(bundle: unknown): string | undefined {
    return readableText(mimeBundle(bundle));
  }

  /**
   * The event for output that the code clears.
   *
   * @param wait - clear it only when there is more; pass all further events through `cleared`.
   */
  clear(wait: boolean): BlockEvent[] {
    this.#toClear = new Set([...(this.#toClear ?? []), ...this.#updated]);
    this.#updated = new Set();
    if (wait) return [];
    this.#toClear = undefined;
    return [{ type: "clear" }];
  }

  /** The block's next events, text or displays, after that which clears what they replace. */
  cleared(events: BlockEvent[]): BlockEvent[] {
    if (!this.#toClear || events.length === 0) return events;
    this.#toClear = undefined;
    return [{ type: "clear" }, ...events];
  }

  /** What has been updated since it was printed; call it when the block has ended. */
  end(): BlockEvent[] {
    const names = new Set([...(this.#toClear ?? []), ...this.#updated]);
    return [...names].flatMap((name) => printed(this.#shown.get(name)?.data ?? {}));
  }

  /**
   * The events for an output that was not even parsed.
   *
   * @param reason - what it was: `JSON of more than 1000000 values`.
   */
  leaveOut(reason: string): BlockEvent[] {
    this.#truncated = true;
    return [{ type: "stderr", data: `A rich output was left out: ${reason}\n` }];
  }

  /** Outputs that cannot be saved are still shown. */
  async #saved(data: MimeBundle, name: string): Promise<{ files: string[]; problem: BlockEvent[] }> {
    try {
      return { files: await this.#board.save(data, name), problem: [] };
    } catch (error) {
      const reason = errorCode(error) ?? String(error);
      return { files: [], problem: [{ type: "stderr", data: `A rich output could not be saved: ${reason}\n` }] };
    }
  }

  #leaveOutRest(): BlockEvent[] {
    if (this.#full) return [];
    this.#full = true;
    this.#truncated = true;
    const reason = `A block may show at most ${mostDisplays} rich outputs, ${mostBytes / 2 ** 20} MiB in total`;
    return [{ type: "stderr", data: `${reason}; the rest is left out.\n` }];
  }
}

function printed(data: MimeBundle): BlockEvent[] {
  const text = readableText(data);
  return text === undefined ? [] : [{ type: "stdout", data: text.endsWith("\n") ? text : `${text}\n` }];
}

/** Vendor-specific JSON types keep their names: `application/vnd.plotly.v1+json` becomes `plotly.json`. */
function endingOf(type: string): string | undefined {
  const known = endings.get(type);
  if (known !== undefined) return known;
  const vendor = /^application\/vnd\.([a-z0-9-]+)[\w.-]*\+json$/.exec(type)?.[1];
  return vendor === undefined ? undefined : `${vendor}.json`;
}
