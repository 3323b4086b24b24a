import type { ComponentModel } from "../components/component-model.ts";
import type { FunctionWithRequirements } from "../functions/function-with-requirements.ts";
import type { ApproveHostCall } from "../functions/host/host-call.ts";
import type { HostFunction } from "../functions/host/host-function.ts";
import type { JsonObject } from "../json-value.ts";
import type { AllowedNetwork } from "../network/network-policy.ts";
import type { RunRecorder } from "../record/run-record.ts";

/**
 * Where a session is that outlives its program, and how to use it: what `connectExecutor` needs. Plain JSON. It contains
 * the session's key: anyone who has it can run code there, and read and change its files, so keep it like a password.
 */
export interface SessionHandle {
  readonly version: 1;
  /** The executor's settings, without functions and callbacks. */
  readonly component: ComponentModel;
  /** What the executor needs to find the session, with its key. */
  readonly session: JsonObject;
}

/** What cannot be part of a handle. */
export interface SessionCallbacks {
  /** As in the executor's options. Default: none. */
  readonly functions?: readonly (FunctionWithRequirements | HostFunction)[] | undefined;
  /** As in the executor's options. Default: all calls are approved. */
  readonly approveHostCall?: ApproveHostCall | undefined;
  /**
   * As in the executor's options, for a policy with `credentials`, `resolve`, `onRequest` or a function as `allow`
   * or `deny`, none of which can be part of a handle. Replaces the list of hosts in the handle. Default: that list, with an `upstreamProxy`
   * that has no password; it is empty if `allow` or `deny` was a function, or if the `upstreamProxy` had a password.
   */
  readonly network?: AllowedNetwork | undefined;
  /** As in the executor's options. Default: what this program runs is not recorded. */
  readonly record?: RunRecorder | undefined;
  /** As in the executor's options. */
  readonly onSessionLost?: ((reason: string) => void) | undefined;
}

/** What a component's `connect` receives besides its config. */
export interface SessionToConnect {
  /** `SessionHandle.session`, which it must validate. */
  readonly session: JsonObject;
  /** Cut off another program that uses the session. */
  readonly takeOver: boolean;
  readonly callbacks: SessionCallbacks;
}
