import type { CheckpointIssue } from "@fenced/core";

/** Code can make any number of things that no checkpoint can keep. */
const mostIssues = 1000;
const [longestName, longestReason] = [4096, 500];

/** Collects what a checkpoint does not have, within limits. */
export class Issues {
  readonly #issues: CheckpointIssue[] = [];
  #more = 0;

  add(kind: "file" | "variable", name: string, reason: string): void {
    if (this.#issues.length >= mostIssues) this.#more += 1;
    else this.#issues.push({ kind, name: name.slice(0, longestName), reason: sentence(reason) });
  }

  addAll(issues: readonly CheckpointIssue[]): void {
    for (const { kind, name, reason } of issues) {
      if (kind !== "more") this.add(kind, name, reason);
      else this.#more += Number(/^\d+/.exec(reason)?.[0] ?? 0);
    }
  }

  get all(): readonly CheckpointIssue[] {
    if (this.#more === 0) return [...this.#issues];
    return [...this.#issues, { kind: "more", name: "", reason: `${this.#more} more are not listed.` }];
  }
}

function sentence(reason: string): string {
  const short = reason.length > longestReason ? `${reason.slice(0, longestReason)}…` : reason;
  return /[.!?…]$/.test(short) ? short : `${short}.`;
}
