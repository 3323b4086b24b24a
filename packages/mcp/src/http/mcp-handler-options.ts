import type { CodeExecutor } from "@fenced/core";
import {
  callbackOption,
  optionsSchema,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import { serverLimits, type McpServerOptions } from "../mcp-server-options.ts";

/** The session that an executor is created for. */
export interface McpSessionStart<User> {
  /** The session's id: random and unique. */
  readonly sessionId: string;
  /** The request that starts the session. Its body has already been read. */
  readonly request: Request;
  /** What `authenticate` returned for the request. */
  readonly user: User;
  /** Aborted when the executor is no longer needed: after `startTimeoutMs`, when the client has left, or with `close()`. */
  readonly signal: AbortSignal;
}

/** Options of `createMcpHandler`. */
export interface McpHandlerOptions<User> extends McpServerOptions {
  /** Creates the executor of one session. The handler owns it and stops it when the session ends. */
  readonly createExecutor: (start: McpSessionStart<User>) => CodeExecutor | Promise<CodeExecutor>;
  /**
   * Returns the user who sent a request, based on its headers. Called for each request; it must not read the body. For
   * `undefined` and `null` the response is 401. If it throws, the response is 500 and the error goes to `onError`.
   */
  readonly authenticate: (request: Request) => User | undefined | null | Promise<User | undefined | null>;
  /**
   * Whether two results of `authenticate` are the same user, which decides who may use a session and what
   * `maxSessionsPerUser` counts. Needed if the results contain something that changes, such as a token's expiry.
   * Default: deep equality.
   */
  readonly sameUser?: ((owner: User, other: User) => boolean) | undefined;
  /**
   * Time limit for `createExecutor` in milliseconds; an executor that arrives later is stopped. `Infinity`: no limit.
   * Default: 60,000.
   */
  readonly startTimeoutMs?: number | undefined;
  /**
   * Host names of your service, without port, that clients may use besides `localhost`, `127.0.0.1` and `[::1]`.
   * Requests to other hosts, and from web pages of other hosts, are refused, which prevents DNS rebinding. Default:
   * none.
   */
  readonly allowedHosts?: readonly string[] | undefined;
  /**
   * Origins of other hosts whose web pages may send requests, such as `https://app.example`. Their browsers' preflight
   * requests are answered, without `authenticate`. Default: none.
   */
  readonly allowedOrigins?: readonly string[] | undefined;
  /**
   * Maximum number of sessions. At the limit, a new session replaces an idle one without an open stream, the longest
   * idle first: of users who have more sessions, otherwise the user's own. A user without a session may replace any. If
   * all are in use, the response is 503. Default: 8.
   */
  readonly maxSessions?: number | undefined;
  /**
   * Maximum number of sessions per user, so that one user cannot take all of them. At the limit, a new session replaces
   * the user's session that has been idle longest and has no open stream; if all are in use, the response is 429.
   * Default: `maxSessions`.
   */
  readonly maxSessionsPerUser?: number | undefined;
  /**
   * Maximum bytes of a request's body; larger ones get status 413. The bodies of all open requests of a user may have
   * four times as many in total; further ones get 429. Default: 10,485,760.
   */
  readonly maxRequestBytes?: number | undefined;
  /** Milliseconds without a request and without an open stream after which a session ends. Default: 1,800,000. */
  readonly sessionIdleMs?: number | undefined;
  /**
   * Receives errors that clients do not see in full: an executor could not be created or stopped, or `authenticate`
   * threw. Default: a process warning.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const originOption = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text,
    "must be an origin, such as https://app.example",
  );

/** The options shared with `startMcpHttpServer`. */
export type McpSessionsOptions = Omit<
  McpHandlerOptions<unknown>,
  "createExecutor" | "authenticate" | "sameUser" | "maxSessionsPerUser"
>;

/** The schemas of these options. */
export const sessionOptions: OptionSchemas<McpSessionsOptions> = {
  ...serverLimits,
  startTimeoutMs: timeLimitOption.exactOptional(),
  allowedHosts: z.array(z.string()).exactOptional(),
  allowedOrigins: z.array(originOption).exactOptional(),
  maxSessions: wholeNumberOption({ from: 1 }).exactOptional(),
  maxRequestBytes: wholeNumberOption({ from: 1, unit: "bytes" }).exactOptional(),
  sessionIdleMs: wholeNumberOption({ from: 1, to: 2_147_483_647, unit: "milliseconds" }).exactOptional(),
  onError: callbackOption<(error: unknown) => void>().exactOptional(),
};

/** Checks the options. */
export function mcpHandlerOptions<User>(): z.ZodType<McpHandlerOptions<User>> {
  return optionsSchema({
    ...sessionOptions,
    createExecutor: callbackOption<McpHandlerOptions<User>["createExecutor"]>(),
    authenticate: callbackOption<McpHandlerOptions<User>["authenticate"]>(),
    maxSessionsPerUser: wholeNumberOption({ from: 1 }).exactOptional(),
    sameUser: callbackOption<NonNullable<McpHandlerOptions<User>["sameUser"]>>().exactOptional(),
  } satisfies OptionSchemas<McpHandlerOptions<User>>);
}
