import type { LeftSession, SessionToUse } from "@fenced/executor-kit/supervisor";
import * as z from "zod";

/** What a handle says about a session that outlives its program. */
export interface LeftPlace {
  /** The sandbox's id. */
  readonly sandbox: string;
  /** The session's own directory there. */
  readonly directory: string;
  /** The work directory there, without symbolic links. */
  readonly workspace: string;
}

/** A sandbox whose session an earlier program has left. */
export type LeftSandbox = SessionToUse<LeftSession & LeftPlace>;

const path = z.string().regex(/^\/[^\0]*$/);

/** What a handle says about it. */
export const leftPlace: z.ZodType<LeftPlace, LeftPlace> = z.strictObject({
  sandbox: z.string().regex(/^[\w-]{1,128}$/),
  directory: path,
  workspace: path,
});
