import type { Fault } from "./http/faults.ts";
import type { PoolType } from "./sessions/session-process.ts";

/** Settings of an emulator; none is required. */
export interface EmulatorOptions {
  /** The port to listen on; 0 for any free one. Default: 0. */
  readonly port?: number;
  /** The address to listen on. Default: `127.0.0.1`, so that nobody else can run code here. */
  readonly host?: string;
  /** More host names that clients may use, in addition to `host` and this machine's names. Default: none. */
  readonly allowedHosts?: readonly string[];
  /** What the pool's sessions run. Default: `PythonLTS`. */
  readonly poolType?: PoolType;
  /** The Python that sessions run on, 3.8 or later; other types of pools need it, too. Default: `python3`. */
  readonly python?: string;
  /** Sessions that may exist at once. Default: 100. */
  readonly maxSessions?: number;
  /** Milliseconds without a request after which a session ends. Default: 300,000. */
  readonly cooldownMs?: number;
  /** A bearer token to accept in addition to the emulator's own; make it long and random. Default: none. */
  readonly token?: string;
  /** The most milliseconds that a synchronous execution may take; the service counts whole seconds. Default: 220,000. */
  readonly syncLimitMs?: number;
  /** The highest `outputStreamsMaxLength`, in bytes; more is cut silently. Default: 1,048,576. */
  readonly outputLimit?: number;
  /** Entries per page of a file list. Default: 100. */
  readonly pageSize?: number;
  /** Refuse flat bodies with `SessionPropertiesMissing`, because the pool expects them in `properties`. Default: false. */
  readonly wrappedBodies?: boolean;
  /** Fence sessions off with Linux namespaces if possible. Default: true. */
  readonly namespaces?: boolean;
  /** Names of the packages that `metadata` reports. Default: what the Python has. */
  readonly packages?: readonly string[];
  /** Faults to inject. Default: none. */
  readonly faults?: readonly Fault[];
}
