import { createHash } from "node:crypto";
import fs from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import { InvalidInputError } from "@fenced/core";
import { errorCode, PinnedDirectory } from "@fenced/executor-kit";

const mostWheels = 10_000;
const mostBytes = 268_435_456;
/** Windows has no such flag. */
const flags =
  fs.constants.O_RDONLY | (process.platform === "win32" ? 0 : fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);

/** A folder of wheels, read only through its open descriptor. */
export class WheelFolder implements AsyncDisposable {
  readonly #directory: PinnedDirectory;
  /** The names of wheels, each with an identity that changes with the file. */
  readonly wheels: ReadonlyMap<string, string>;

  private constructor(directory: PinnedDirectory, wheels: ReadonlyMap<string, string>) {
    this.#directory = directory;
    this.wheels = wheels;
  }

  /** @throws InvalidInputError if there is no such folder. */
  static async open(place: string): Promise<WheelFolder> {
    const directory = await openDirectory(place);
    const names = (await readdir(directory.entry("."))).filter((name) => name.endsWith(".whl")).toSorted();
    const wheels = names.slice(0, mostWheels).flatMap((name): [string, string][] => {
      const entry = fs.lstatSync(directory.entry(name), { bigint: true, throwIfNoEntry: false });
      if (entry?.isFile() !== true) return [];
      const identity = [name, entry.dev, entry.ino, entry.size, entry.mtimeNs, entry.ctimeNs].join(":");
      return [[name, createHash("sha256").update(identity).digest("hex")]];
    });
    return new WheelFolder(directory, new Map(wheels));
  }

  /** Opens a wheel for reading; returns a sentence that says why if that fails. */
  wheel(name: string): { readonly descriptor: number; readonly size: number } | string {
    if (!this.wheels.has(name)) return `The folder of wheels has no ${JSON.stringify(name)}.`;
    try {
      const descriptor = fs.openSync(this.#directory.entry(name), flags);
      const entry = fs.fstatSync(descriptor);
      if (entry.isFile() && entry.size <= mostBytes) return { descriptor, size: entry.size };
      fs.closeSync(descriptor);
      return `${name} is larger than ${mostBytes / 2 ** 20} MiB.`;
    } catch (error) {
      return `${name} could not be read: ${errorCode(error) ?? String(error)}.`;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#directory[Symbol.asyncDispose]();
  }
}

async function openDirectory(place: string): Promise<PinnedDirectory> {
  try {
    return await PinnedDirectory.open(await realpath(place));
  } catch (cause) {
    const reason = errorCode(cause) ?? String(cause);
    throw new InvalidInputError(`The folder of wheels ${place} could not be opened: ${reason}`, {
      cause,
      remedy: "Set `packages.wheels` to a directory that you can read.",
    });
  }
}
