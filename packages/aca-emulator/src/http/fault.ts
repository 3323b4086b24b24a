/** Which requests a fault hits, and how often. */
export interface FaultAim {
  /** Only requests to this part of the API. Default: all but the emulator's own. */
  readonly on?: "executions" | "poll" | "files" | "session" | "metadata";
  /** The probability with which a request is hit. Default: 1. */
  readonly rate?: number;
  /** How many requests pass before the first one is hit. Default: 0. */
  readonly skip?: number;
  /** How many requests are hit; after that the fault is over. Default: no end. */
  readonly times?: number;
}

/** Something that goes wrong. */
export type Fault = FaultAim &
  (
    | { /** Waits before the request is looked at. */ readonly kind: "latency"; readonly milliseconds: number }
    | {
        /** 429: the pool is full. The request is not carried out. */
        readonly kind: "too-many-requests";
        /** The answer's `Retry-After`; none if left out. */
        readonly retryAfterSeconds?: number;
      }
    | {
        /** An error of the service. Default status: 500. */
        readonly kind: "server-error";
        readonly status?: 500 | 502 | 503 | 504;
        /** Whether the request is carried out before. Default: false. */
        readonly afterwards?: boolean;
      }
    | {
        /** The connection ends without an answer. */
        readonly kind: "drop";
        /** Whether the request is carried out: before the connection ends. Default: false. */
        readonly afterwards?: boolean;
      }
    | { /** 401, as for a token whose time is over. */ readonly kind: "expired-token" }
    | { /** 403: the caller lacks the role. */ readonly kind: "forbidden" }
    | {
        /** The session ends before the request is looked at, as if its cooldown were over. */ readonly kind: "expired-session";
      }
  );
