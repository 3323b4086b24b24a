import type { NetworkDecision } from "@fenced/core";

/** Refusals that a result keeps. */
const mostKept = 50;

/**
 * What a session's network policy refused, for the blocks that run meanwhile. The proxy does not know which of several blocks
 * asked, so each of them is told.
 */
export class NetworkLog {
  readonly #open = new Set<NetworkDecision[]>();

  /** Takes a decision of the proxy. */
  add(decision: NetworkDecision): void {
    if (decision.allowed) return;
    for (const kept of this.#open) {
      if (kept.length < mostKept && !kept.some((other) => isSame(other, decision))) kept.push(decision);
    }
  }

  /** Begins to collect; the function that it returns ends that, and gives what was refused. */
  collect(): () => readonly NetworkDecision[] {
    const kept: NetworkDecision[] = [];
    this.#open.add(kept);
    return () => {
      this.#open.delete(kept);
      return kept;
    };
  }
}

/** Decisions without those that were made before, as many as a result keeps. */
export function distinctDecisions(decisions: readonly NetworkDecision[]): readonly NetworkDecision[] {
  return decisions
    .filter((decision, index) => decisions.findIndex((other) => isSame(other, decision)) === index)
    .slice(0, mostKept);
}

/** A program that tries again and again is told once. */
function isSame(one: NetworkDecision, other: NetworkDecision): boolean {
  return one.host === other.host && one.port === other.port && one.reason === other.reason;
}
