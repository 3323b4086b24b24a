import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { ModelClientError } from "@fenced/core";
import type { RecordEntry } from "./record-entry.ts";

/** Writes a record line by line. A line is on the disk when `write` resolves. */
export class RecordWriter {
  readonly #file: string;
  readonly #append: boolean;
  #begun = false;
  #last: Promise<void> = Promise.resolve();

  /** @param append - keep the lines that are there. */
  constructor(file: string, append: boolean) {
    this.#file = file;
    this.#append = append;
  }

  /** @throws ModelClientError if the file cannot be written. */
  async write(entry: RecordEntry): Promise<void> {
    // One after another, whether or not the one before could be written: lines never mix.
    const written = this.#last.then(() => this.#writeLine(`${JSON.stringify(entry)}\n`));
    this.#last = written.catch(() => undefined);
    await written.catch((cause: unknown) => {
      throw new ModelClientError(`The answer could not be recorded in ${this.#file}`, {
        remedy: "Check that the path can be written and that the disk has room.",
        cause,
      });
    });
  }

  async #writeLine(line: string): Promise<void> {
    if (!this.#begun) await this.#begin();
    this.#begun = true;
    const handle = await open(this.#file, "a");
    try {
      await handle.appendFile(line);
      await handle.datasync();
    } finally {
      await handle.close();
    }
  }

  async #begin(): Promise<void> {
    await mkdir(dirname(this.#file), { recursive: true });
    const handle = await open(this.#file, this.#append ? "a+" : "w");
    try {
      if (!this.#append) return;
      const whole = await handle.readFile();
      // What a crash left of a line would spoil the one that follows it.
      await handle.truncate(whole.lastIndexOf("\n") + 1);
    } finally {
      await handle.close();
    }
  }
}
