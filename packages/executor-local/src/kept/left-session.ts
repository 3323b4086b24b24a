import type { LeftSession, SessionToUse } from "@fenced/executor-kit/supervisor";
import * as z from "zod";

/** Where a session is on this machine. */
export interface LeftPlace {
  /** The session's own directory. */
  readonly directory: string;
  /** The work directory, without symbolic links. */
  readonly workspace: string;
  /** The beginning of the names of the session's own files in the work directory. */
  readonly filePrefix: string;
  /** The control groups of its processes. */
  readonly groups: readonly string[];
  /** The process that cleans up after it. */
  readonly cleaner: number;
  /** Variables of blocks that say where its place has programs. */
  readonly variables: Readonly<Record<string, string>>;
}

/** A session that an earlier program has left. */
export type LeftOnHost = SessionToUse<LeftSession & LeftPlace>;

const path = z.string().regex(/^\/[^\0]*$/);

/** What a handle says about it. */
export const leftPlace: z.ZodType<LeftPlace, LeftPlace> = z.strictObject({
  directory: path,
  workspace: path,
  filePrefix: z.string().regex(/^\.fenced-[0-9a-f]{12}-$/),
  // What may be killed: only what a session of ours has made.
  groups: z.array(path.regex(/\/fenced-[0-9a-f-]{36}$/)).max(4),
  cleaner: z.int().positive(),
  variables: z.record(z.string(), z.string()),
});
