import {
  type CodeExecutor,
  describeHostInput,
  type HostCall,
  type HostCallApproval,
  type HostFunction,
  hostFunctionsFrom,
  InvalidInputError,
  knownCapabilities,
} from "@fenced/core";
import type { WaitingCall } from "./code-execution-output.ts";
import type { CodeExecutionToolOptions } from "./code-execution-tool-options.ts";

/**
 * The tools that code can call, as functions to describe to the model.
 *
 * @throws InvalidInputError if code in this executor cannot call one of them.
 */
export function codeModeFunctions(
  executor: CodeExecutor,
  { tools = {}, approveHostCall }: CodeExecutionToolOptions,
): HostFunction[] {
  const functions = hostFunctionsFrom(tools);
  const unapproved = approveHostCall ? undefined : functions.find(({ needsApproval }) => needsApproval !== false);
  if (unapproved) {
    throw new InvalidInputError(
      `The tool ${unapproved.name} needs approval, but running code cannot wait for the AI SDK to ask`,
      {
        remedy:
          "Pass `approveHostCall` to codeExecutionTool, or offer the tool to the model directly, where the AI SDK asks.",
      },
    );
  }
  // An executor that only knows once it has started rejects the call itself.
  if (functions.length > 0 && knownCapabilities(executor)?.hostFunctions.length === 0) {
    throw new InvalidInputError("`tools` cannot be offered: code in this executor cannot call host functions", {
      remedy: "Leave them out, or use an executor whose `capabilities.hostFunctions` is not empty.",
    });
  }
  return functions;
}

/** The tools of one model call as functions, and their calls that are waiting for approval. */
export class WaitingCalls {
  readonly #options: CodeExecutionToolOptions;
  readonly #tell: () => void;
  readonly #waiting = new Map<string, WaitingCall>();

  /** @param tell - called when `calls` changes. */
  constructor(options: CodeExecutionToolOptions, tell: () => void) {
    this.#options = options;
    this.#tell = tell;
  }

  /** Calls that are waiting now, oldest first. */
  get calls(): readonly WaitingCall[] {
    return [...this.#waiting.values()];
  }

  /** @param callOptions - the tools' options from the call that runs the code. */
  functions(callOptions: object): HostFunction[] {
    const { tools, approveHostCall } = this.#options;
    if (tools === undefined) return [];
    if (!approveHostCall) return hostFunctionsFrom(tools, { callOptions });
    const approve = async (call: HostCall): Promise<HostCallApproval> => {
      const answered = this.#show(call);
      try {
        return await approveHostCall(call);
      } finally {
        answered();
      }
    };
    return hostFunctionsFrom(tools, { callOptions, approve });
  }

  /** Shows a call only after some time: programs that decide by rules answer at once. */
  #show({ callId, name, input, signal }: HostCall): () => void {
    const { progressIntervalMs = 250, maxProgressCharacters = 4000 } = this.#options;
    const show = setTimeout(() => {
      this.#waiting.set(callId, { callId, name, input: describeHostInput(input, maxProgressCharacters) });
      this.#tell();
    }, progressIntervalMs);
    const hide = (): void => {
      clearTimeout(show);
      signal.removeEventListener("abort", hide);
      if (this.#waiting.delete(callId)) this.#tell();
    };
    // No one needs the answer any more, and it may never come.
    signal.addEventListener("abort", hide, { once: true });
    return hide;
  }
}
