import type { Fault } from "./http/fault.ts";

/** What a pool's sessions run. */
export type PoolType = "PythonLTS" | "NodeLTS" | "Shell";

/** Settings of an emulator; none is required. */
export interface EmulatorOptions {
  /** The port to listen on; 0: any that is free. Default: 0. */
  readonly port?: number;
  /** The address to listen on. Default: `127.0.0.1`, so that nobody else can run code here. */
  readonly host?: string;
  /** What the pool's sessions run. Default: `PythonLTS`. */
  readonly poolType?: PoolType;
  /** The Python that sessions run on, 3.8 or later; pools of other types need it too. Default: `python3`. */
  readonly python?: string;
  /** Sessions that may exist at once. Default: 100. */
  readonly maxSessions?: number;
  /** Seconds without a request after which a session is ended. Default: 300. */
  readonly cooldownSeconds?: number;
  /** A bearer token to accept besides JSON web tokens for the service's audience. */
  readonly token?: string;
  /** Seconds that a synchronous execution may take at most. Default: 220. */
  readonly syncLimitSeconds?: number;
  /** The highest `outputStreamsMaxLength` that is granted, in bytes; more is cut without a word. Default: 1,048,576. */
  readonly outputLimit?: number;
  /** Entries on one page of a list of files. Default: 100. */
  readonly pageSize?: number;
  /** Refuse flat bodies with `SessionPropertiesMissing`: the pool wants them in `properties`. Default: false. */
  readonly wrappedBodies?: boolean;
  /** Fence sessions off with Linux namespaces where that is possible. Default: true. */
  readonly namespaces?: boolean;
  /** Names of the packages that `metadata` reports. Default: what the Python has. */
  readonly packages?: readonly string[];
  /** What shall go wrong. Default: nothing. */
  readonly faults?: readonly Fault[];
}
