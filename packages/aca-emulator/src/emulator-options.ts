import type { Fault } from "./http/faults.ts";
import type { PoolType } from "./sessions/session-process.ts";

/** Settings of an emulator; none is required. */
export interface EmulatorOptions {
  /** The port to listen on; 0: any that is free. Default: 0. */
  readonly port?: number;
  /** The address to listen on. Default: `127.0.0.1`, so that nobody else can run code here. */
  readonly host?: string;
  /** Other names by which clients may call the server, besides `host` and those of this machine. Default: none. */
  readonly allowedHosts?: readonly string[];
  /** What the pool's sessions run. Default: `PythonLTS`. */
  readonly poolType?: PoolType;
  /** The Python that sessions run on, 3.8 or later; pools of other types need it too. Default: `python3`. */
  readonly python?: string;
  /** Sessions that may exist at once. Default: 100. */
  readonly maxSessions?: number;
  /** Milliseconds without a request after which a session is ended. Default: 300,000. */
  readonly cooldownMs?: number;
  /** A bearer token to accept besides those that the emulator issues; make it long and random. Default: none. */
  readonly token?: string;
  /** Milliseconds that a synchronous execution may take at most; the service counts whole seconds. Default: 220,000. */
  readonly syncLimitMs?: number;
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
  /** What goes wrong. Default: nothing. */
  readonly faults?: readonly Fault[];
}
