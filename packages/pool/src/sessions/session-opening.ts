import { type CodeExecutor, InvalidInputError, type RestoreOption, type RestoreReceipt } from "@fenced/core";
import type { SessionLease } from "../directory/session-lease.ts";
import type { ExecutorSessionsOptions } from "./executor-sessions-options.ts";
import { noCheckpoints } from "./session-checkpoints.ts";
import { endedBecause } from "./session-ended.ts";
import { canBeLeft, cannotBeLeft, connectTo } from "./session-place.ts";

/** How many things that did not come back to name. */
const mostNamed = 3;

/** Opens the executor of a key, with what is kept of its session. */
export class SessionOpening {
  readonly #lease: SessionLease;
  readonly #options: ExecutorSessionsOptions;
  readonly #restore: RestoreOption | undefined;
  /** The session was in a place; the note names the new one as soon as there is one. */
  readonly #hadPlace: boolean;
  #isConnected = false;

  /** @throws InvalidInputError if the session cannot come back here. */
  constructor(lease: SessionLease, options: ExecutorSessionsOptions) {
    this.#lease = lease;
    this.#options = options;
    const { checkpoint: id, handle } = lease.note;
    this.#hadPlace = handle !== undefined;
    if (id === undefined) return;
    const { checkpoints: store } = options;
    if (!store) {
      throw new InvalidInputError("The session has a checkpoint, and this process does not know its store", {
        remedy: "Pass the same `checkpoints` in all processes, or begin anew with `end(key)`.",
        option: "checkpoints",
      });
    }
    this.#restore = { store, id };
  }

  /** Whether the executor is in a place that an earlier process has left. */
  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** @throws ExecutorStoppedError if another process may have the session, from which nothing may be taken. */
  async create(signal: AbortSignal): Promise<CodeExecutor> {
    this.#assertHeld();
    const { hold, note } = this.#lease;
    const connected = await connectTo(hold.key, note, this.#options, signal);
    this.#isConnected = connected !== undefined;
    if (connected) return connected;
    return this.#options.create(hold.key, signal, this.#restore);
  }

  /**
   * @throws InvalidInputError if the started executor is not what the options need.
   * @throws ExecutorStoppedError if another process may have the session.
   */
  check(executor: CodeExecutor): void {
    this.#assertHeld();
    if (this.#options.onDrain === "detach" && !canBeLeft(executor)) throw cannotBeLeft();
    if (this.#options.checkpoints && !executor.checkpoint) throw noCheckpoints();
    if (this.#isConnected) return;
    if (this.#restore && executor.restored?.id !== this.#restore.id) {
      throw new InvalidInputError("`create` returned an executor without the session's checkpoint", {
        remedy: "Pass its third argument on: `create: (key, signal, restore) => new XExecutor({ restore })`.",
        option: "create",
      });
    }
  }

  #assertHeld(): void {
    if (this.#lease.over !== undefined) throw endedBecause(this.#lease.over);
  }

  /** What is missing that users of the key may expect, and have not been told: `undefined` if nothing is. */
  lost(executor: CodeExecutor): string | undefined {
    // Everything is as it was.
    if (this.#isConnected) return undefined;
    const abandoned = this.#hadPlace ? "The place where the session was is gone." : this.#lease.abandoned;
    const missing = this.#restore && describeMissing(executor.restored);
    if (abandoned === undefined) return missing;
    if (!this.#restore) return `${abandoned} Its state is gone.`;
    const restored = `${abandoned} Its last checkpoint was restored; what happened after it is gone.`;
    return missing === undefined ? restored : `${restored} ${missing}`;
  }
}

function describeMissing(receipt: RestoreReceipt | undefined): string | undefined {
  const missing = receipt?.incomplete ?? [];
  if (missing.length === 0) return undefined;
  const named = missing.slice(0, mostNamed).map(({ kind, name, reason }) => {
    return kind === "more" ? reason : `the ${kind} ${JSON.stringify(name)} (${reason})`;
  });
  const more = missing.length > mostNamed ? `, and ${missing.length - mostNamed} more` : "";
  return `Did not come back from its checkpoint: ${named.join(", ")}${more}.`;
}
