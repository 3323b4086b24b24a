import { randomUUID } from "node:crypto";
import { ControlGroup, killProcesses, Leash, type ProcessFamily, SessionDirectories } from "@fenced/executor-kit";
import { sessionMark } from "@fenced/executor-kit/supervisor";

/** The basis of an unsandboxed session on this host: its directories, and what ends its processes. */
export class HostGround {
  readonly directories: SessionDirectories;
  /** Absent if this process cannot create a control group. */
  readonly group: ControlGroup | undefined;
  /** The variable that identifies all processes that the session started. */
  readonly mark: ProcessFamily["mark"];
  readonly #leash: Leash;

  private constructor(parts: Pick<HostGround, "directories" | "group" | "mark"> & { readonly leash: Leash }) {
    ({ directories: this.directories, group: this.group, mark: this.mark, leash: this.#leash } = parts);
  }

  /** @throws BackendUnavailableError if the work directory cannot be created. */
  static async open(owner: Parameters<typeof SessionDirectories.plan>[0]): Promise<HostGround> {
    const directories = await SessionDirectories.plan(owner);
    const planned = await ControlGroup.plan(`fenced-${randomUUID()}`);
    const mark = { name: sessionMark, value: owner.id };
    // Started before there is anything to remove, since this program may die at any moment.
    const leash = new Leash({ mark, controlGroups: planned ? [planned] : [], ...directories.leashed });
    try {
      await directories.make();
      const group = (await planned?.make()) === true ? planned : undefined;
      return new HostGround({ directories, group, mark, leash });
    } catch (error) {
      await directories.remove().catch(() => {});
      await leash.release();
      throw error;
    }
  }

  /** Ends all processes of the session, including those that are known by other means than the mark. */
  async endProcesses(known: Omit<ProcessFamily, "mark">): Promise<void> {
    await Promise.all([this.group?.kill(), killProcesses({ ...known, mark: this.mark })]);
  }

  /** Removes everything that the session created; all processes must have ended. */
  async release(): Promise<void> {
    try {
      await this.group?.remove();
      await this.directories.remove();
    } finally {
      await this.#leash.release();
    }
  }
}
