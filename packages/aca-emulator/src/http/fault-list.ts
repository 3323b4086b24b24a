import type { Fault } from "./fault.ts";

/** Draws, for each request, which faults hit it. */
export class FaultList {
  #entries: Entry[] = [];

  constructor(faults: readonly Fault[] = []) {
    this.replace(faults);
  }

  replace(faults: readonly Fault[]): void {
    this.#entries = faults.map(newEntry);
  }

  add(fault: Fault): () => void {
    const entry = newEntry(fault);
    this.#entries.push(entry);
    return () => {
      this.#entries = this.#entries.filter((each) => each !== entry);
    };
  }

  /** The faults that hit a request to this part of the API; each counts as used. */
  draw(part: string): Fault[] {
    return this.#entries.filter((entry) => isHit(entry, part)).map(({ fault }) => fault);
  }
}

interface Entry {
  readonly fault: Fault;
  /** Requests that still pass unharmed. */
  passing: number;
  /** Requests that are still hit. */
  left: number;
}

function newEntry(fault: Fault): Entry {
  return { fault, passing: fault.skip ?? 0, left: fault.times ?? Infinity };
}

function isHit(entry: Entry, part: string): boolean {
  const { fault } = entry;
  if (fault.on !== undefined && fault.on !== part) return false;
  if (entry.passing > 0) {
    entry.passing -= 1;
    return false;
  }
  if (entry.left <= 0 || Math.random() >= (fault.rate ?? 1)) return false;
  entry.left -= 1;
  return true;
}
