import type { Display } from "@fenced/core";
import type { BlockEvent } from "@fenced/executor-kit";
import type { DisplayFiles } from "./display-files.ts";
import { mimeBundle, plainText } from "./mime-bundle.ts";

/** An output as kernels send it. */
export interface RichOutput {
  readonly data: Readonly<Record<string, unknown>>;
  /** By which the kernel names a display that it may update. */
  readonly displayId?: string;
  readonly isUpdate: boolean;
}

/** Turns a kernel's rich outputs into events, and knows which of them may still be updated. */
export class DisplayBoard {
  readonly #files: DisplayFiles;
  /** The newest output under an id, with the name of its files. An id may be updated by a later block. */
  readonly #named = new Map<string, { readonly display: Display; readonly name: string }>();

  constructor(files: DisplayFiles) {
    this.#files = files;
  }

  /** The events of an output: its text as a terminal shows it, and all of it as a display. */
  async events({ data, displayId, isUpdate }: RichOutput): Promise<BlockEvent[]> {
    const bundle = mimeBundle(data);
    const before = displayId === undefined ? undefined : this.#named.get(displayId);
    const name = isUpdate && before ? before.name : this.#files.newName();
    const display: Display = { data: bundle, files: await this.#files.save(bundle, name) };
    if (displayId !== undefined) this.#named.set(displayId, { display, name });
    const text = plainText(bundle);
    return [
      ...(text === undefined ? [] : [{ type: "stdout" as const, data: text.endsWith("\n") ? text : `${text}\n` }]),
      { type: "display", display, ...(isUpdate && before ? { replaces: before.display } : {}) },
    ];
  }
}
