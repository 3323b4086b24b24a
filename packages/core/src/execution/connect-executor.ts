import * as z from "zod";
import { untilAborted } from "../abort/index.ts";
import type { LoadComponentOptions } from "../components/component-class.ts";
import { componentModelSchema } from "../components/component-model-schema.ts";
import { loadComponentSchemas, useComponent } from "../components/load-component.ts";
import { describeIssues } from "../describe-issues.ts";
import { ComponentError } from "../errors/component-error.ts";
import type { FunctionWithRequirements } from "../functions/function-with-requirements.ts";
import type { ApproveHostCall } from "../functions/host/host-call.ts";
import {
  callbackOption,
  checkOptions,
  hostFunctionOption,
  objectOption,
  type OptionSchemas,
  optionsSchema,
  signalOption,
} from "../options/check-options.ts";
import { allowedNetworkOptions, checkCredentials } from "../options/network-option.ts";
import { recordOption } from "../options/record-option.ts";
import { fieldRequirement } from "../options/requirement.ts";
import type { CodeExecutor } from "./code-executor.ts";
import type { SessionCallbacks, SessionHandle } from "./session-handle.ts";

/** Options of `connectExecutor`; all are optional. */
export interface ConnectExecutorOptions extends SessionCallbacks, LoadComponentOptions {
  /**
   * If another program uses the session, cut it off: its calls reject with `ExecutorStoppedError`, and it can change
   * nothing any more, however late it comes back. Default: false; connecting then rejects.
   */
  readonly takeOver?: boolean | undefined;
  /** Cancels the connection. */
  readonly signal?: AbortSignal | undefined;
}

const connectOptions: z.ZodType<ConnectExecutorOptions> = optionsSchema({
  ...loadComponentSchemas,
  functions: z
    .array(
      z.union([
        hostFunctionOption,
        objectOption<FunctionWithRequirements>(["toJSON"], "a FunctionWithRequirements or a host function"),
      ]),
    )
    .exactOptional(),
  approveHostCall: callbackOption<ApproveHostCall>().exactOptional(),
  network: optionsSchema(allowedNetworkOptions).check(checkCredentials).exactOptional(),
  record: recordOption.exactOptional(),
  onSessionLost: callbackOption<(reason: string) => void>().exactOptional(),
  takeOver: z.boolean().exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<ConnectExecutorOptions>);

const handleSchema = z.strictObject({
  version: z.literal(1),
  component: componentModelSchema,
  session: z.record(z.string(), z.json()),
});

/**
 * Connects to a session that another executor has left, in this program or another one: with `detach()`, or because its
 * program has died. Files, variables and whatever blocks left running are as they were; blocks that the other program
 * was waiting for are ended. One program at a time can use a session. The executor's package is imported as by
 * `loadComponent`.
 *
 * @param handle - `executor.handle` of the other executor.
 * @returns a started executor, with the settings of the other one.
 * @throws SessionInUseError if another program uses the session.
 * @throws BackendUnavailableError if the session has ended, or cannot be reached.
 * @throws ComponentError if the handle is invalid, or its executor is not installed or not allowed.
 * @throws InvalidInputError if an option is unknown or wrong.
 * @throws `options.signal.reason` if the signal was aborted.
 *
 * @example
 * await using executor = await connectExecutor(JSON.parse(saved), { functions });
 */
export async function connectExecutor(
  handle: SessionHandle,
  options: ConnectExecutorOptions = {},
): Promise<CodeExecutor> {
  const checked = checkOptions(connectOptions, options, "connectExecutor");
  const { functions, approveHostCall, network, record, onSessionLost, takeOver = false, signal, ...loading } = checked;
  signal?.throwIfAborted();
  const { component, session } = parseHandle(handle);
  const callbacks: SessionCallbacks = {
    ...(functions && { functions }),
    ...(approveHostCall && { approveHostCall }),
    ...(network && { network }),
    ...(record && { record }),
    ...(onSessionLost && { onSessionLost }),
  };
  const executor = await useComponent<CodeExecutor>(component, loading, (found, config, context) => {
    if (found.connect) return found.connect(config, { session, takeOver, callbacks }, context);
    throw new ComponentError(`Sessions of ${component.provider} end with their programs`, {
      remedy: "Pass the handle of an executor with `keepAliveMs`, and install the version of its package that made it.",
    });
  });
  try {
    // Without the signal: an executor whose own start is cancelled ends what it has opened.
    await untilAborted(executor.start(), signal);
    return executor;
  } catch (error) {
    await letGo(executor);
    throw error;
  }
}

/** The session goes on: another program can still connect to it. */
async function letGo(executor: CodeExecutor): Promise<void> {
  if (executor.capabilities.keepAlive === true && executor.detach) await executor.detach();
  else await executor[Symbol.asyncDispose]();
}

function parseHandle(handle: unknown): SessionHandle {
  const parsed = handleSchema.safeParse(handle, { error: fieldRequirement });
  if (parsed.success) return parsed.data;
  throw new ComponentError(`This is not a session's handle: ${describeIssues(parsed.error)}`, {
    remedy: "Pass `executor.handle` of an executor with `keepAliveMs`, or the JSON that was saved of it.",
    cause: parsed.error,
  });
}
