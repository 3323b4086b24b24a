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

/** What the executor of a session is made for. */
export interface McpSessionStart<User> {
  /** The session's id: random, and new for each session. */
  readonly sessionId: string;
  /** The request that begins the session. Its body has been read. */
  readonly request: Request;
  /** What `authenticate` gave for the request. */
  readonly user: User;
  /** Aborted when the executor is no longer wanted: after `startTimeoutMs`, or when the client has left, or with `close()`. */
  readonly signal: AbortSignal;
}

/** Options of `createMcpHandler`. */
export interface McpHandlerOptions<User> extends McpServerOptions {
  /** Creates the executor of one session. The handler owns it and stops it when the session ends. */
  readonly createExecutor: (start: McpSessionStart<User>) => CodeExecutor | Promise<CodeExecutor>;
  /**
   * Says who sends a request, from its headers; called for each request, and may not read the body. `undefined` and `null` are
   * nobody: the answer is 401. What it throws is answered with 500 and goes to `onError`.
   */
  readonly authenticate: (request: Request) => User | undefined | null | Promise<User | undefined | null>;
  /**
   * Whether two results of `authenticate` are the same user: a session answers nobody else, and `maxSessionsPerUser` counts by it. Needed if they have something that
   * changes, such as the time at which a token expires. Default: they are deeply equal.
   */
  readonly sameUser?: (owner: User, other: User) => boolean;
  /** Milliseconds that `createExecutor` may take; one that comes later is stopped. `Infinity`: no limit. Default: 60,000. */
  readonly startTimeoutMs?: number;
  /**
   * Host names, without port, that clients may use besides `localhost`, `127.0.0.1` and `[::1]`: the names of your service.
   * Requests to other hosts, and from web pages of other hosts, are refused, which stops DNS rebinding. Default: none.
   */
  readonly allowedHosts?: readonly string[];
  /** Origins of other hosts whose web pages may send requests, such as `https://app.example`. Default: none. */
  readonly allowedOrigins?: readonly string[];
  /**
   * Sessions at a time. For one more, the session ends that has been idle longest and has no open stream; if all are in use,
   * the answer is 503. Default: 8.
   */
  readonly maxSessions?: number;
  /**
   * Sessions of one user at a time, so that one user cannot have all. For one more, the session of theirs ends that has been idle
   * longest and has no open stream; if all are in use, the answer is 429. Default: as many as `maxSessions`.
   */
  readonly maxSessionsPerUser?: number;
  /** Bytes of a request's body; a larger one is answered with 413. Default: 10,485,760. */
  readonly maxRequestBytes?: number;
  /** Milliseconds without a request and without an open stream after which a session ends. Default: 1,800,000. */
  readonly sessionIdleMs?: number;
  /** Called with errors that clients do not see in full: an executor could not be created or stopped, `authenticate` threw. Default: a process warning. */
  readonly onError?: (error: unknown) => void;
}

const originOption = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text,
    "must be an origin, such as https://app.example",
  );

/** The options that a server over HTTP has, too. */
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
