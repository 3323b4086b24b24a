import { readdirSync, readlinkSync } from "node:fs";
import { stat } from "node:fs/promises";
import { membersOf, type ProcessFamily } from "./kill-processes.ts";
import { listProcesses } from "./process-table.ts";

/** Milliseconds between two looks: each reads the table of all processes of this host. */
const lookMs = 500;

/** Counts the disk space of files that a family of processes has deleted and still holds open. Linux only; 0 elsewhere. */
export class HeldBytes {
  readonly #family: ProcessFamily;
  readonly #directory: string;
  #counted = 0;
  #at = -Infinity;

  /** @param directory - files elsewhere do not count. Absolute path without symbolic links. */
  constructor(family: ProcessFamily, directory: string) {
    this.#family = family;
    this.#directory = directory;
  }

  /** The number of bytes; up to half a second old. */
  async count(): Promise<number> {
    if (process.platform !== "linux" || performance.now() < this.#at + lookMs) return this.#counted;
    const files = new Map<string, number>();
    for (const pid of membersOf(this.#family, await listProcesses())) {
      for (const place of this.#deletedFiles(pid)) {
        const found = await stat(place, { bigint: true }).catch(() => undefined);
        if (found?.nlink === 0n) files.set(`${found.dev}:${found.ino}`, Number(found.blocks) * 512);
      }
    }
    this.#counted = [...files.values()].reduce((sum, bytes) => sum + bytes, 0);
    this.#at = performance.now();
    return this.#counted;
  }

  #deletedFiles(pid: number): string[] {
    try {
      return readdirSync(`/proc/${pid}/fd`)
        .map((name) => `/proc/${pid}/fd/${name}`)
        .filter((place) => this.#isDeleted(place));
    } catch {
      // The process has ended.
      return [];
    }
  }

  #isDeleted(place: string): boolean {
    try {
      const target = readlinkSync(place);
      return target.startsWith(`${this.#directory}/`) && target.endsWith(" (deleted)");
    } catch {
      return false;
    }
  }
}
