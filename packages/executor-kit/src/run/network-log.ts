import type { NetworkDecision } from "@fenced/core";

/** Maximum number of refusals that a result keeps. */
const mostKept = 50;

/**
 * What a session's network policy refused, for the blocks that run meanwhile. The proxy does not know which of several
 * blocks made a request, so each of them gets all refusals.
 */
export class NetworkLog {
  readonly #open = new Set<NetworkDecision[]>();

  /** Adds a decision of the proxy. */
  add(decision: NetworkDecision): void {
    if (decision.allowed) return;
    for (const kept of this.#open) {
      if (kept.length < mostKept && !kept.some((other) => isSame(other, decision))) kept.push(decision);
    }
  }

  /** Starts to collect; the returned function stops that and returns what was refused. */
  collect(): () => readonly NetworkDecision[] {
    const kept: NetworkDecision[] = [];
    this.#open.add(kept);
    return () => {
      this.#open.delete(kept);
      return kept;
    };
  }
}

/** The distinct decisions, as many as a result keeps. */
export function distinctDecisions(decisions: readonly NetworkDecision[]): readonly NetworkDecision[] {
  return decisions
    .filter((decision, index) => decisions.findIndex((other) => isSame(other, decision)) === index)
    .slice(0, mostKept);
}

/** Repeated attempts count once. */
function isSame(one: NetworkDecision, other: NetworkDecision): boolean {
  return one.host === other.host && one.port === other.port && one.reason === other.reason;
}
