import type { Fault } from "./http/faults.ts";
import type { PoolType } from "./sessions/session-process.ts";

/** Settings of an emulator; none is required. */
export interface EmulatorOptions {
  /** The port to listen on; 0 picks a free one. Default: 0. */
  readonly port?: number | undefined;
  /** The address to listen on. Default: `127.0.0.1`, so that only this machine can run code here. */
  readonly host?: string | undefined;
  /** More host names that clients may use, in addition to `host` and this machine's names. Default: none. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** What the pool's sessions run. Default: `PythonLTS`. */
  readonly poolType?: PoolType | undefined;
  /** The Python that sessions run on, 3.8 or later; other types of pools also need it. Default: `python3`. */
  readonly python?: string | undefined;
  /** Maximum number of sessions at once. Default: 100. */
  readonly maxSessions?: number | undefined;
  /** Milliseconds without a request after which a session ends. Default: 300,000. */
  readonly cooldownMs?: number | undefined;
  /** A bearer token to accept in addition to the emulator's own; make it long and random. Default: none. */
  readonly token?: string | undefined;
  /** Time limit of synchronous executions in milliseconds, rounded down to whole seconds. Default: 220,000. */
  readonly syncLimitMs?: number | undefined;
  /** Maximum `outputStreamsMaxLength` in bytes; higher values are silently reduced to it. Default: 1,048,576. */
  readonly outputLimit?: number | undefined;
  /** Entries per page of a file list. Default: 100. */
  readonly pageSize?: number | undefined;
  /** Refuse flat bodies with `SessionPropertiesMissing`, because the pool expects them in `properties`. Default: false. */
  readonly wrappedBodies?: boolean | undefined;
  /** Isolate sessions with Linux namespaces if possible. Default: true. */
  readonly namespaces?: boolean | undefined;
  /** Names of the packages that `metadata` reports. Default: the packages of `python`. */
  readonly packages?: readonly string[] | undefined;
  /** Faults to inject. Default: none. */
  readonly faults?: readonly Fault[] | undefined;
}
