import { ServiceFailure } from "../service-failure.ts";
import { isObject } from "./api-request.ts";

/** Which requests a fault hits, and how often. */
export interface FaultAim {
  /** Only requests to this part of the API. Default: all but the emulator's own. */
  readonly on?: "executions" | "poll" | "files" | "session" | "metadata";
  /** The probability that a request is hit. Default: 1. */
  readonly rate?: number;
  /** How many requests pass before the first one is hit. Default: 0. */
  readonly skip?: number;
  /** How many requests are hit before the fault ends. Default: no limit. */
  readonly times?: number;
}

/** A fault to inject. */
export type Fault = FaultAim &
  (
    | { /** Waits before the request is processed. */ readonly kind: "latency"; readonly milliseconds: number }
    | {
        /** 429: the pool is full. The request is not carried out. */
        readonly kind: "too-many-requests";
        /** The answer's `Retry-After`, which has whole seconds. Default: none. */
        readonly retryAfterMs?: number;
      }
    | {
        /** The service fails. Default status: 500. */
        readonly kind: "server-error";
        readonly status?: 500 | 502 | 503 | 504;
        /** Whether the request is carried out first. Default: false. */
        readonly afterwards?: boolean;
      }
    | {
        /** The connection ends without an answer. */
        readonly kind: "drop";
        /** Whether the request is carried out before the connection ends. Default: false. */
        readonly afterwards?: boolean;
      }
    | { /** 401, as for an expired token. */ readonly kind: "expired-token" }
    | { /** 403: the caller lacks the role. */ readonly kind: "forbidden" }
    | {
        /** The session ends before the request is processed, as if its cooldown were over. */ readonly kind: "expired-session";
      }
  );

/** Decides, for each request, which faults hit it. */
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

type Check = (value: unknown) => boolean;

const isNumber: Check = (value) => typeof value === "number" && value >= 0;
const isBoolean: Check = (value) => typeof value === "boolean";
const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);

const aim = {
  on: oneOf("executions", "poll", "files", "session", "metadata"),
  rate: isNumber,
  skip: isNumber,
  times: isNumber,
};

/** The fields that a fault of each kind may have. */
const kinds: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  latency: { ...aim, milliseconds: isNumber },
  "too-many-requests": { ...aim, retryAfterMs: isNumber },
  "server-error": { ...aim, status: oneOf(500, 502, 503, 504), afterwards: isBoolean },
  drop: { ...aim, afterwards: isBoolean },
  "expired-token": aim,
  forbidden: aim,
  "expired-session": aim,
};

/** @throws ServiceFailure if the value is not a list of faults. */
export function parseFaults(value: unknown): Fault[] {
  if (!Array.isArray(value)) throw new ServiceFailure(400, "InvalidFault", "The faults must be a list.");
  return value.map((each: unknown) => {
    if (isFault(each)) return each;
    throw new ServiceFailure(400, "InvalidFault", `${JSON.stringify(each)} is not a fault.`);
  });
}

function isFault(value: unknown): value is Fault {
  if (!isObject(value) || typeof value["kind"] !== "string") return false;
  const checks = Object.hasOwn(kinds, value["kind"]) ? kinds[value["kind"]] : undefined;
  if (!checks || (value["kind"] === "latency" && value["milliseconds"] === undefined)) return false;
  return Object.entries(value).every(([name, each]) => name === "kind" || checks[name]?.(each) === true);
}
