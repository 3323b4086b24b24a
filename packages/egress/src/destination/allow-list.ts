import { type HostPattern, matchesHost, parseHostPattern } from "@fenced/core/network";
import { specialKind } from "./address-kind.ts";
import { Refusal } from "./refusal.ts";

/** A name or an address in its canonical spelling, and a port. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

/** The hosts that clients may reach. */
export class AllowList {
  readonly #patterns: readonly HostPattern[];

  /** @param entries - must be checked already. */
  constructor(entries: readonly string[]) {
    this.#patterns = entries.map((entry) => parseHostPattern(entry)).filter((pattern) => "host" in pattern);
  }

  /** @throws Refusal if no entry matches the place. */
  checkName({ host, port }: Place): void {
    if (this.#patterns.some((pattern) => matchesHost(pattern, host, port))) return;
    const named = this.#patterns.some(
      (pattern) => pattern.port !== undefined && matchesHost(pattern, host, pattern.port),
    );
    const what = named ? `port ${port} of ${host}` : host;
    throw new Refusal(403, `${what} is not in this executor's network policy`, true);
  }

  /** Why an address must not be dialed, as text after "is". */
  refusedKind(address: string, port: number): string | undefined {
    const kind = specialKind(address);
    if (kind === undefined) return undefined;
    return this.#patterns.some((pattern) => !pattern.below && matchesHost(pattern, address, port)) ? undefined : kind;
  }
}
