import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Leash } from "@fenced/executor-kit";

/** A temporary directory of this host, created when it is first needed, and deleted even if this program is killed. */
export class ScratchDirectory {
  readonly #owner: string;
  #made: Promise<{ readonly directory: string; readonly leash: Leash }> | undefined;

  /** @param owner - a globally unique name. */
  constructor(owner: string) {
    this.#owner = owner;
  }

  async path(): Promise<string> {
    this.#made ??= this.#make();
    return (await this.#made).directory;
  }

  async remove(): Promise<void> {
    const made = await this.#made?.catch(() => undefined);
    this.#made = undefined;
    if (!made) return;
    await rm(made.directory, { recursive: true, force: true });
    await made.leash.release();
  }

  async #make(): Promise<{ readonly directory: string; readonly leash: Leash }> {
    const directory = await realpath(await mkdtemp(path.join(tmpdir(), "fenced-aca-")));
    const leash = new Leash({ mark: { name: "FENCED_SESSION", value: this.#owner }, remove: [directory] });
    return { directory, leash };
  }
}
