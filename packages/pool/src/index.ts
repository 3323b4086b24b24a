export { ExecutorPool } from "./pool/executor-pool.ts";
export type { ExecutorLease } from "./pool/executor-lease.ts";
export type {
  AcquireOptions,
  ExecutorPoolOptions,
  PoolExecutorContext,
  PoolStartOptions,
} from "./pool/executor-pool-options.ts";
export type { PoolCounts } from "./pool/pool-telemetry.ts";
export { ExecutorSessions } from "./sessions/executor-sessions.ts";
export type { ExecutorSessionsOptions } from "./sessions/executor-sessions-options.ts";
export type { SessionCounts } from "./sessions/session-telemetry.ts";
export { memoryDirectory } from "./directory/memory-directory.ts";
export type {
  AcquiredSession,
  OccupiedSession,
  RenewedSession,
  SessionDirectory,
  SessionHold,
  SessionMessage,
  SessionNote,
  SessionRequest,
} from "./directory/session-directory.ts";
export type { DrainOptions } from "./drain.ts";
export { QuotaExceededError, SessionInUseError } from "@fenced/core";
