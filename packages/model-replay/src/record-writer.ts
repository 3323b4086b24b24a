import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { ModelClientError } from "@fenced/core";
import { makeDirectories } from "@fenced/core/runtime";
import type { RecordEntry } from "./record-entry.ts";

const appending = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
const ownerOnly = 0o600;

/** Writes a recording line by line. A line is on disk when `write` resolves. */
export class RecordWriter {
  readonly #file: string;
  readonly #append: boolean;
  #begun = false;
  #last: Promise<void> = Promise.resolve();

  /** @param append - keep existing lines. */
  constructor(file: string, append: boolean) {
    this.#file = file;
    this.#append = append;
  }

  /** @throws ModelClientError if the file cannot be written. */
  async write(entry: RecordEntry): Promise<void> {
    // One after another, even if an earlier write failed: lines never mix.
    const written = this.#last.then(() => this.#writeLine(`${JSON.stringify(entry)}\n`));
    this.#last = written.catch(() => undefined);
    await written.catch((cause: unknown) => {
      throw new ModelClientError(`The answer could not be recorded in ${this.#file}`, {
        remedy: "Check that it is a file that you can write, and that the disk is not full.",
        cause,
      });
    });
  }

  async #writeLine(line: string): Promise<void> {
    if (!this.#begun) await this.#begin();
    this.#begun = true;
    const handle = await open(this.#file, appending, ownerOnly);
    try {
      await handle.appendFile(line);
      await handle.datasync();
    } finally {
      await handle.close();
    }
  }

  async #begin(): Promise<void> {
    await makeDirectories(dirname(this.#file));
    const handle = await open(this.#file, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK, ownerOnly);
    try {
      if (!(await handle.stat({ bigint: true })).isFile()) throw new Error("it is not a regular file");
      await handle.chmod(ownerOnly);
      const whole = this.#append ? await handle.readFile() : Buffer.alloc(0);
      // Remove part of a line that a crash left behind: it would corrupt the next line.
      await handle.truncate(whole.lastIndexOf("\n") + 1);
    } finally {
      await handle.close();
    }
  }
}
