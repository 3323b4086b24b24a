import type { LeftSession, SessionToUse } from "@fenced/executor-kit/supervisor";
import * as z from "zod";
import { serverSecrets, type ServerSecrets } from "../servers/server-settings.ts";

/** What a handle says about a session that outlives its program. */
export interface LeftKernelPlace {
  readonly kernelId: string;
  /** The work directory, as the kernel names it. */
  readonly workspace: string;
  /** It is deleted with the session. */
  readonly ownsWorkspace: boolean;
  /** What the server wants to see; anyone who has it can use the whole server. */
  readonly server: ServerSecrets;
}

/** A session that an earlier program has left on a server. */
export type LeftKernel = SessionToUse<LeftSession & LeftKernelPlace>;

/** What a handle says about it. */
export const leftKernelPlace: z.ZodType<LeftKernelPlace, LeftKernelPlace> = z.strictObject({
  kernelId: z.string().min(1).max(200),
  workspace: z.string(),
  ownsWorkspace: z.boolean(),
  server: serverSecrets,
});
