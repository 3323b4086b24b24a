import type { PoolType } from "../emulator-options.ts";
import type { SessionPool } from "../sessions/session-pool.ts";
import type { Session } from "../sessions/session.ts";

/** The pool that requests are about: its sessions, and how it behaves. */
export interface EmulatedPool {
  readonly sessions: SessionPool;
  readonly poolType: PoolType;
  readonly syncLimitSeconds: number;
  readonly outputLimit: number;
  readonly pageSize: number;
  readonly wrappedBodies: boolean;
  readonly createdAt: Date;
  /** The packages of the pool's sessions. */
  packages(): Promise<readonly { readonly name: string; readonly version: string }[]>;
  /** What runs the code, and its version. */
  runtime(): Promise<string>;
}

/** What a session has, as the API says it. */
export function sessionResource(session: Session): object {
  return {
    identifier: session.identifier,
    etag: session.etag,
    createdAt: session.createdAt.toISOString(),
    lastAccessedAt: session.lastAccessedAt.toISOString(),
    expireAt: session.expireAt.toISOString(),
  };
}
