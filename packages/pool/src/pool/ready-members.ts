import { longestTimer } from "@fenced/core/abort";
import type { PoolSettings } from "./executor-pool-options.ts";
import type { PoolMember } from "./pool-member.ts";

/**
 * The executors that are ready for a caller. Takes the latest one first, so that surplus executors idle longest, and
 * end. Checks all of them from time to time.
 */
export class ReadyMembers {
  readonly #settings: Pick<PoolSettings, "min" | "idleTimeoutMs" | "checkIntervalMs">;
  readonly #onIdle: (member: PoolMember) => void;
  readonly #members: PoolMember[] = [];
  #idle: NodeJS.Timeout | undefined;
  #checks: NodeJS.Timeout | undefined;

  /** @param onIdle - called for an executor beyond `min` that has idled too long. */
  constructor(settings: PoolSettings, onIdle: (member: PoolMember) => void) {
    this.#settings = settings;
    this.#onIdle = onIdle;
  }

  get length(): number {
    return this.#members.length;
  }

  add(member: PoolMember): void {
    member.state = "ready";
    member.readySince = performance.now();
    this.#members.push(member);
    this.#watchIdle();
    this.#watchHealth();
  }

  take(): PoolMember | undefined {
    return this.#members.pop();
  }

  remove(member: PoolMember): void {
    const place = this.#members.indexOf(member);
    if (place !== -1) this.#members.splice(place, 1);
  }

  /** Stops all checks, because no more callers will come. */
  close(): void {
    clearTimeout(this.#idle);
    clearInterval(this.#checks);
  }

  #watchIdle(): void {
    const { idleTimeoutMs, min } = this.#settings;
    clearTimeout(this.#idle);
    const [longest] = this.#members;
    if (longest === undefined || this.#members.length <= min || idleTimeoutMs === Infinity) return;
    const leftMs = Math.max(0, longest.readySince + idleTimeoutMs - performance.now());
    const end = (): void => {
      // It may have been taken in the meantime, and others put back.
      const isOld = leftMs <= longestTimer && this.#members[0] === longest && this.#members.length > min;
      if (isOld) this.#onIdle(longest);
      this.#watchIdle();
    };
    this.#idle = setTimeout(end, Math.min(leftMs, longestTimer));
    this.#idle.unref();
  }

  #watchHealth(): void {
    const { checkIntervalMs } = this.#settings;
    if (this.#checks !== undefined || checkIntervalMs === Infinity) return;
    const check = (): void => {
      for (const member of this.#members) void member.check();
    };
    this.#checks = setInterval(check, Math.min(checkIntervalMs, longestTimer));
    this.#checks.unref();
  }
}
