import { ServiceError } from "./service-error.ts";

/** Whether an error says that the session does not exist any more, also as `explainError` words it. */
export function isSessionGone(error: unknown): boolean {
  if (error instanceof ServiceError) return error.isSessionGone;
  return error instanceof Error && error.cause instanceof ServiceError && error.cause.isSessionGone;
}
