import type { CheckpointStore, CodeExecutor, NetworkPolicy, RestoreOption } from "@fenced/core";
import { longestTimer } from "@fenced/core/abort";
import {
  callbackOption,
  networkPolicyOption,
  objectOption,
  optionsSchema,
  type OptionSchemas,
  timeLimitOption,
  wholeNumberOption,
} from "@fenced/core/options";
import * as z from "zod";

/** What a client wants of a new sandbox. */
export interface SandboxRequest {
  /** The template's name. */
  readonly template: string;
  /** Environment variables; all processes of the sandbox get them, whatever the executor does. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * What it may connect to, which is the option `network` of all executors: the template's own policy, narrowed by the client's rules, also by those
   * of `updateNetwork` later; `"none"` if the client wants no network at all and the template has no list of hosts. `undefined`: whatever the
   * executor has by default.
   */
  readonly network: NetworkPolicy | undefined;
  /**
   * The checkpoint with which it must start, which is the option `restore` of all executors: that of a paused sandbox, or of a
   * snapshot. `undefined` for one that starts empty, and always without `checkpoints` and `stateDirectory`.
   */
  readonly restore: RestoreOption | undefined;
  /** Aborted when the sandbox is no longer wanted. */
  readonly signal: AbortSignal;
}

/**
 * Creates the executor of a new sandbox, which the handler owns: return a new one each time. Its `processes` must start
 * programs, and Python 3.8 or later must be there; `python3` serves the files.
 */
export type SandboxCreator = (request: SandboxRequest) => CodeExecutor | Promise<CodeExecutor>;

/** A template that says what its sandboxes may connect to at most. */
export interface NetworkTemplate {
  /**
   * With a list of hosts, `{ allow }`, clients can set and change rules within it. With `"none"`, everything is denied anyway. With `"open"`, they
   * can only create sandboxes without any network. After a restart of the server, sandboxes that it finds again have the list of that time.
   */
  readonly network: NetworkPolicy;
  /** Must pass `request.network` on to the executor. */
  readonly create: SandboxCreator;
}

/** How sandboxes are created. A mere function is as one with `network: "open"`, whatever its executor reaches. */
export type SandboxTemplate = SandboxCreator | NetworkTemplate;

/** Options of `createE2BHandler`. */
export interface E2BHandlerOptions {
  /** How sandboxes are created, by the names that clients use. `e2b` asks for `base` if its user names none. */
  readonly templates: Readonly<Record<string, SandboxTemplate>>;
  /** The keys that clients may have, each at least 16 visible ASCII characters long. Those of one key cannot see the sandboxes of another. */
  readonly apiKeys: readonly [string, ...string[]];
  /**
   * The domain whose subdomains `PORT-SANDBOX.domain` lead to this server, with the port if it is not 443. Default: none;
   * clients then need the server's address in `E2B_SANDBOX_URL`.
   */
  readonly domain?: string | undefined;
  /**
   * A directory of this host, for one server at a time, which is created if it is missing, for this user only. Sandboxes then
   * outlive the server: one that starts later with the same directory finds them again, running or paused, with snapshots.
   * Templates must return executors with `keepAliveMs`, which is how long a sandbox may be without a server. The directory
   * contains secrets, with which code can be run in the sandboxes. Default: none; sandboxes end with the server.
   */
  readonly stateDirectory?: string | undefined;
  /**
   * Where the files of paused sandboxes and of snapshots are kept: a store of `@fenced/checkpoints`. Default: a directory in
   * `stateDirectory`, of which everything is deleted that no sandbox and no snapshot needs. Without both, sandboxes cannot be
   * paused, and there are no snapshots.
   */
  readonly checkpoints?: CheckpointStore | undefined;
  /** Maximum number of paused sandboxes and snapshots together. Default: 100. */
  readonly maxKept?: number | undefined;
  /** Maximum size of all their files together, in bytes. Default: 68,719,476,736 (64 GiB). */
  readonly maxKeptBytes?: number | undefined;
  /** Maximum number of sandboxes that run. Default: 32. */
  readonly maxSandboxes?: number | undefined;
  /**
   * How long a sandbox can live at most from now on, in milliseconds; clients that want more get 400. At most
   * 2,147,483,647, which is 24 days. Default: 24 hours.
   */
  readonly maxTimeoutMs?: number | undefined;
  /** Time limit for creating and starting a sandbox in milliseconds. `Infinity`: no limit. Default: 120,000. */
  readonly startTimeoutMs?: number | undefined;
  /** Receives errors that clients only know as "internal error". Default: a process warning. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Options with a function that takes everything that no client is told. */
export interface ReportingOptions extends E2BHandlerOptions {
  readonly onError: (error: unknown) => void;
}

const apiKey = z.string().regex(/^[\x21-\x7e]{16,}$/, "must be at least 16 visible ASCII characters long");

const networkTemplate = optionsSchema({
  network: networkPolicyOption(),
  create: callbackOption<SandboxCreator>(),
} satisfies OptionSchemas<NetworkTemplate>);

/** Validates the options. */
export const e2bHandlerOptions: z.ZodType<E2BHandlerOptions> = optionsSchema({
  templates: z
    .record(
      z.string().min(1),
      z.union([callbackOption<SandboxCreator>(), networkTemplate], "must be a function, or { network, create }"),
    )
    .refine((templates) => Object.keys(templates).length > 0, "must have at least one template"),
  apiKeys: z.tuple([apiKey], apiKey).readonly(),
  domain: z
    .string()
    .regex(/^[\w.-]+(?::\d+)?$/, "must be a domain, perhaps with a port: sandboxes.example:8443")
    .exactOptional(),
  stateDirectory: z.string().min(1).exactOptional(),
  checkpoints: objectOption<CheckpointStore>(
    ["begin", "open", "list", "delete", "sweep"],
    "a store of @fenced/checkpoints, such as directoryStore(path)",
  ).exactOptional(),
  maxKept: wholeNumberOption({ from: 1 }).exactOptional(),
  maxKeptBytes: wholeNumberOption({ from: 1, unit: "bytes" }).exactOptional(),
  maxSandboxes: wholeNumberOption({ from: 1 }).exactOptional(),
  maxTimeoutMs: wholeNumberOption({ from: 1000, to: longestTimer }).exactOptional(),
  startTimeoutMs: timeLimitOption.exactOptional(),
  onError: callbackOption<(error: unknown) => void>().exactOptional(),
} satisfies OptionSchemas<E2BHandlerOptions>);
