import { isAddress, isDeniedAddress, isExceptedName, type ParsedDenial, parseDenyEntry } from "@fenced/core/network";
import { Refusal } from "./refusal.ts";

/** A requested name or address in canonical form, and a port. */
interface Requested {
  readonly host: string;
  readonly port: number;
}

/** The addresses that clients must not reach, whatever else is allowed. */
export class DenyList {
  readonly #denials: readonly ParsedDenial[];
  readonly #key: string;

  /** @throws TypeError if an entry is not valid: nothing must be allowed by mistake. */
  constructor(entries: readonly unknown[]) {
    this.#key = keyOf(entries);
    this.#denials = entries.map((entry) => {
      const parsed = parseDenyEntry(entry);
      if ("problem" in parsed) throw new TypeError(parsed.problem);
      return parsed;
    });
  }

  /** Whether it is the list of these entries. They are parsed once: a list may have thousands, and code can connect all the time. */
  isOf(entries: readonly unknown[]): boolean {
    return keyOf(entries) === this.#key;
  }

  /** Why a place cannot be reached, as far as that is known before its name is looked up. */
  problemWith({ host, port }: Requested): Refusal | undefined {
    const isDenied = this.#denials.some((denial) =>
      isAddress(host) ? isDeniedAddress(denial, host) : denial.isTotal && !isExceptedName(denial, host, port),
    );
    if (!isDenied) return undefined;
    return new Refusal(403, `${host} is not in this executor's network policy: it is denied`, true);
  }

  /** Whether a place may be reached at any address that its name has. */
  permitsName({ host, port }: Requested): boolean {
    return this.#denials.every((denial) => isExceptedName(denial, host, port));
  }

  /** Whether an address must not be dialed for a place. */
  deniesAddress({ host, port }: Requested, address: string): boolean {
    return this.#denials.some((denial) => isDeniedAddress(denial, address) && !isExceptedName(denial, host, port));
  }
}

function keyOf(entries: readonly unknown[]): string {
  return JSON.stringify(entries);
}
