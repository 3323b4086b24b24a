import type { ExecutorSandboxSession } from "../sandbox/sandbox-types.ts";

/** The network policies of the AI SDK's harnesses. */
export type HarnessNetworkPolicy =
  | { readonly mode: "allow-all" }
  | { readonly mode: "deny-all" }
  | {
      readonly mode: "custom";
      readonly allowedHosts?: readonly string[] | undefined;
      readonly allowedCIDRs?: readonly string[] | undefined;
      readonly deniedCIDRs?: readonly string[] | undefined;
    };

/** A port of a program in the sandbox. */
export interface HarnessPort {
  /** The port in the sandbox. */
  readonly port: number;
  /** Default: `"http"`. */
  readonly protocol?: "http" | "https" | "ws" | undefined;
}

/** An executor in the form of the AI SDK's `HarnessV1NetworkSandboxSession`. */
export interface HarnessSandboxSession extends ExecutorSandboxSession {
  /** The id that the session was created with. */
  readonly id: string;
  /** The workspace's absolute path, as programs see it. */
  readonly defaultWorkingDirectory: string;
  /** The ports that the executor publishes. */
  readonly ports: readonly number[];
  /** Returns the address on this host that leads to a port. */
  getPortEndpoint(options: HarnessPort): Promise<{ readonly url: string }>;
  /** Returns the same address as a string. */
  getPortUrl(options: HarnessPort): Promise<string>;
  /** Stops the executor. */
  stop(): Promise<void>;
  /** Stops the executor, then calls `destroy` of the provider's options. */
  destroy(): Promise<void>;
  /**
   * Sets which hosts programs may connect to from now on; open connections stay open.
   *
   * @throws InvalidInputError if it contains CIDRs, which are not supported.
   */
  setNetworkPolicy(policy: HarnessNetworkPolicy): Promise<void>;
  /** Returns the sandbox with files and commands only. */
  restricted(): ExecutorSandboxSession;
}

/** A harness's request to create a session. */
export interface HarnessSessionRequest {
  /** The session's id, which must also be a valid name of a directory. Default: a new UUID. */
  readonly sessionId?: string | undefined;
  /** Cancels the creation. */
  readonly abortSignal?: AbortSignal | undefined;
  /** Identifies what `onFirstCreate` installs; unused, because nothing is kept between sessions. */
  readonly identity?: string | undefined;
  /** Sets up a new sandbox. */
  readonly onFirstCreate?:
    | ((session: ExecutorSandboxSession, options: { abortSignal?: AbortSignal }) => Promise<void>)
    | undefined;
}

/** An executor in the form of the AI SDK's `HarnessV1SandboxProvider`. */
export interface HarnessSandboxProvider {
  readonly specificationVersion: "harness-sandbox-v1";
  readonly providerId: string;
  /**
   * Creates an executor for a new session and starts it.
   *
   * @throws InvalidInputError if the id cannot name a directory, or the executor cannot start programs.
   * @throws whatever `createExecutor`, the executor's start or `onFirstCreate` throws.
   */
  createSession(request?: HarnessSessionRequest): Promise<HarnessSandboxSession>;
  /** Does the same for a session that existed before; its executor finds the files that it kept. */
  resumeSession(request: {
    readonly sessionId: string;
    readonly abortSignal?: AbortSignal | undefined;
  }): Promise<HarnessSandboxSession>;
}
