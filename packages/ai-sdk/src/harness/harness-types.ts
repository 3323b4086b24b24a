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

/** A port to reach a program in the sandbox by. */
export interface HarnessPort {
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
  /** The address of this host that leads to a port. */
  getPortEndpoint(options: HarnessPort): Promise<{ readonly url: string }>;
  /** The same as text. */
  getPortUrl(options: HarnessPort): Promise<string>;
  /** Stops the executor. */
  stop(): Promise<void>;
  /** Stops the executor, and then calls `destroy` of the provider's options. */
  destroy(): Promise<void>;
  /**
   * Sets what programs may connect to from now on; connections that are open stay open.
   *
   * @throws InvalidInputError if it names CIDRs, which cannot be told from names here.
   */
  setNetworkPolicy(policy: HarnessNetworkPolicy): Promise<void>;
  /** Files and commands only. */
  restricted(): ExecutorSandboxSession;
}

/** What a harness asks for when it creates a session. */
export interface HarnessSessionRequest {
  readonly sessionId?: string | undefined;
  readonly abortSignal?: AbortSignal | undefined;
  /** Names what `onFirstCreate` installs; not used, since nothing is kept between sessions. */
  readonly identity?: string | undefined;
  /** Sets a new sandbox up. */
  readonly onFirstCreate?:
    | ((session: ExecutorSandboxSession, options: { abortSignal?: AbortSignal }) => Promise<void>)
    | undefined;
}

/** An executor in the form of the AI SDK's `HarnessV1SandboxProvider`. */
export interface HarnessSandboxProvider {
  readonly specificationVersion: "harness-sandbox-v1";
  readonly providerId: string;
  createSession(request?: HarnessSessionRequest): Promise<HarnessSandboxSession>;
  resumeSession(request: {
    readonly sessionId: string;
    readonly abortSignal?: AbortSignal | undefined;
  }): Promise<HarnessSandboxSession>;
}
