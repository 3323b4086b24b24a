import fs from "node:fs";
import { InvalidInputError } from "@fenced/core";
import * as z from "zod";
import type { Answer } from "../files/file-requests.ts";
import { InstallationError } from "./installer.ts";
import { makePackages, type Installation } from "./package-image.ts";

/** How many times the code of one session may install packages. */
const mostInstallations = 50;
const pieceBytes = 1_048_576;
const requirements = z.array(z.string().max(1000)).max(1000);

/** What the code may request about packages. */
const request = z.discriminatedUnion("op", [
  z.object({ op: z.literal("install"), requirements, installed: requirements }),
  z.object({ op: z.literal("packaged"), at: z.int().min(0), length: z.int().min(0).max(pieceBytes) }),
]);

/** This process's files with packages, by the options that they depend on. Never closed, because other executors may use them. */
const opened = new Map<string, number>();

/** The packages of a session: those installed at its start, and those that its code has installed. */
export class SessionPackages {
  readonly #options: Omit<Installation, "install">;
  #first: number | undefined;
  #added: number | undefined;
  /** What this session alone has open. */
  readonly #own = new Set<number>();
  #installations = 0;
  #closed = false;

  constructor(options: Omit<Installation, "install">) {
    this.#options = options;
  }

  /** The file with all packages, for the next interpreter. */
  get descriptor(): number | undefined {
    return this.#added ?? this.#first;
  }

  /**
   * Installs the packages of the options.
   *
   * @throws InvalidInputError if they cannot be installed.
   */
  async open(signal: AbortSignal): Promise<void> {
    const { packages, cacheDirectory } = this.#options;
    const { install } = packages;
    if (install === undefined) return;
    // The contents of a folder may have changed; an index is asked only once.
    const key = packages.wheels === undefined ? JSON.stringify([packages, cacheDirectory]) : undefined;
    this.#first = key === undefined ? undefined : opened.get(key);
    try {
      this.#first ??= await makePackages({ ...this.#options, install }, signal);
    } catch (error) {
      if (!(error instanceof InstallationError)) throw error;
      throw new InvalidInputError(`The packages could not be installed: ${error.message.replace(/\.$/, "")}`, {
        cause: error,
        remedy: "Correct `packages`, or add the missing wheels to its folder.",
      });
    }
    if (key === undefined) this.#own.add(this.#first);
    else opened.set(key, this.#first);
  }

  /** Answers a request of the code; `undefined`: it is about something else. */
  async answer(fields: unknown, signal: AbortSignal): Promise<Answer | undefined> {
    const asked = request.safeParse(fields);
    if (!asked.success || this.#options.packages.installFromCode !== true) return undefined;
    if (asked.data.op === "packaged") return this.#read(asked.data);
    this.#installations += 1;
    if (this.#installations > mostInstallations) {
      return { fields: { error: `A session may install packages at most ${mostInstallations} times.` } };
    }
    try {
      const install = [...asked.data.installed, ...asked.data.requirements];
      const made = await makePackages({ ...this.#options, install }, signal);
      this.#own.add(made);
      if (this.#closed) {
        this.close();
        return { fields: { error: "The session has ended." } };
      }
      if (this.#added !== undefined) this.#closeOne(this.#added);
      this.#added = made;
      return { fields: { packages: fs.fstatSync(made).size } };
    } catch (error) {
      return { fields: { error: error instanceof Error ? error.message : String(error) } };
    }
  }

  /** Closes what only this session uses. */
  close(): void {
    this.#closed = true;
    this.#added = undefined;
    for (const each of this.#own) this.#closeOne(each);
  }

  #closeOne(descriptor: number): void {
    fs.closeSync(descriptor);
    this.#own.delete(descriptor);
  }

  #read({ at, length }: { readonly at: number; readonly length: number }): Answer {
    const bytes = Buffer.alloc(this.#added === undefined ? 0 : length);
    const count = this.#added === undefined ? 0 : fs.readSync(this.#added, bytes, 0, length, at);
    return { fields: {}, bytes: bytes.subarray(0, count) };
  }
}
