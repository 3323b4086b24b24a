import type { LeftSession, SessionToUse } from "@fenced/executor-kit/supervisor";
import * as z from "zod";

/** Where a session is. */
export interface LeftPlace {
  readonly namespace: string;
  /** The pod's name. */
  readonly pod: string;
  /** The pod's own id, since another pod can get its name. */
  readonly uid: string;
  /** The name of what the pod was requested with: a Job, or a claim on a warm pool. */
  readonly request: string;
}

/** A pod whose session an earlier program has left. */
export type LeftPod = SessionToUse<LeftSession & LeftPlace>;

const name = z.string().regex(/^[0-9a-z]([0-9a-z.-]{0,251}[0-9a-z])?$/);

/** What a handle says about it. */
export const leftPlace: z.ZodType<LeftPlace, LeftPlace> = z.strictObject({
  namespace: name,
  pod: name,
  uid: z.string().regex(/^[\w-]{1,64}$/),
  request: name,
});
