import fs from "node:fs";
import { InvalidInputError } from "@fenced/core";
import * as z from "zod";
import type { Answer } from "../interpreter/call-connections.ts";
import { InstallationError } from "./installer.ts";
import { makePackages, type Installation } from "./package-image.ts";

/** How often the code of one session may install something. */
const mostInstallations = 50;
const pieceBytes = 1_048_576;
const requirements = z.array(z.string().max(1000)).max(1000);

/** What the code may ask about packages. */
const request = z.discriminatedUnion("op", [
  z.object({ op: z.literal("install"), requirements, installed: requirements }),
  z.object({ op: z.literal("packaged"), at: z.int().min(0), length: z.int().min(0).max(pieceBytes) }),
]);

/** Files with packages of this process, by what they were made for. Never closed, because other executors use them. */
const opened = new Map<string, number>();

/** The packages of a session: those of its start, and what its code has installed. */
export class SessionPackages {
  readonly #options: Omit<Installation, "install">;
  #first: number | undefined;
  #added: number | undefined;
  #installations = 0;

  constructor(options: Omit<Installation, "install">) {
    this.#options = options;
  }

  /** The file with all of them, for the next interpreter. */
  get descriptor(): number | undefined {
    return this.#added ?? this.#first;
  }

  /**
   * Installs what is there from the start.
   *
   * @throws InvalidInputError if that is not possible.
   */
  async open(signal: AbortSignal): Promise<void> {
    const { packages, cacheDirectory } = this.#options;
    const { install } = packages;
    if (install === undefined) return;
    // What is in a folder may have changed; what an index has is asked for once.
    const key = packages.wheels === undefined ? JSON.stringify([packages, cacheDirectory]) : undefined;
    this.#first = key === undefined ? undefined : opened.get(key);
    try {
      this.#first ??= await makePackages({ ...this.#options, install }, signal);
    } catch (error) {
      if (!(error instanceof InstallationError)) throw error;
      throw new InvalidInputError(`The packages could not be installed: ${error.message.replace(/\.$/, "")}`, {
        cause: error,
        remedy: "Correct `packages`, or put the wheels that are missing into its folder.",
      });
    }
    if (key !== undefined) opened.set(key, this.#first);
  }

  /** Answers what the code asks; `undefined`: that is about something else. */
  async answer(fields: unknown, signal: AbortSignal): Promise<Answer | undefined> {
    const asked = request.safeParse(fields);
    if (!asked.success || this.#options.packages.installFromCode !== true) return undefined;
    if (asked.data.op === "packaged") return this.#read(asked.data);
    this.#installations += 1;
    if (this.#installations > mostInstallations) {
      return { fields: { error: `A session may install packages ${mostInstallations} times.` } };
    }
    try {
      const install = [...asked.data.installed, ...asked.data.requirements];
      const made = await makePackages({ ...this.#options, install }, signal);
      this.#closeAdded();
      this.#added = made;
      return { fields: { packages: fs.fstatSync(made).size } };
    } catch (error) {
      return { fields: { error: error instanceof Error ? error.message : String(error) } };
    }
  }

  close(): void {
    this.#closeAdded();
  }

  #read({ at, length }: { readonly at: number; readonly length: number }): Answer {
    const bytes = Buffer.alloc(this.#added === undefined ? 0 : length);
    const count = this.#added === undefined ? 0 : fs.readSync(this.#added, bytes, 0, length, at);
    return { fields: {}, bytes: bytes.subarray(0, count) };
  }

  #closeAdded(): void {
    if (this.#added !== undefined) fs.closeSync(this.#added);
    this.#added = undefined;
  }
}
