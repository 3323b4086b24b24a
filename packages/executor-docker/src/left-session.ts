import type { LeftSession, SessionToUse } from "@fenced/executor-kit/supervisor";
import * as z from "zod";

/** Where a session is. */
export interface LeftPlace {
  /** The container's id. */
  readonly container: string;
}

/** A container whose session an earlier program has left. */
export type LeftContainer = SessionToUse<LeftSession & LeftPlace>;

/** What a handle says about it. */
export const leftPlace: z.ZodType<LeftPlace, LeftPlace> = z.strictObject({
  container: z.string().regex(/^[0-9a-f]{12,64}$/),
});
