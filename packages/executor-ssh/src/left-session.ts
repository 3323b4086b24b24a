import type { LeftSession, SessionAddress, SessionToUse } from "@fenced/executor-kit/supervisor";
import * as z from "zod";

/** Where a session is on its host. */
export interface RemotePlace {
  /** The session's own directory there. */
  readonly directory: string;
  /** The work directory there, without symbolic links. */
  readonly workspace: string;
  /** The interpreter of the supervisor. */
  readonly python: string;
}

/** What a handle says about a session that outlives its program. */
export interface LeftPlace extends RemotePlace {
  /** The beginning of the names of the session's own files in the work directory. */
  readonly filePrefix: string;
}

/** A session that an earlier program has left on a host. */
export type LeftRemote = SessionToUse<LeftSession & LeftPlace>;

/** A session that outlives its program, as a connection to it is opened. */
export interface KeptSession {
  readonly address: SessionAddress;
  readonly keepAliveMs: number;
  /** The session of an earlier program. Default: a new one. */
  readonly left?: LeftRemote | undefined;
}

const path = z.string().regex(/^\/[^\0]*$/);

/** What a handle says about it. */
export const leftPlace: z.ZodType<LeftPlace, LeftPlace> = z.strictObject({
  directory: path,
  workspace: path,
  python: path,
  filePrefix: z.string().regex(/^\.fenced-[0-9a-f]{12}-$/),
});
