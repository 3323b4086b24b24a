import {
  type CodeExecutor,
  describeHostInput,
  type HostCall,
  type HostCallApproval,
  type HostFunction,
  hostFunctionsFrom,
  InvalidInputError,
} from "@fenced/core";
import type { WaitingCall } from "./code-execution-output.ts";
import type { CodeExecutionToolOptions } from "./code-execution-tool-options.ts";

/**
 * The tools that code can call, as functions for the description.
 *
 * @throws InvalidInputError if one of them cannot be called by code in this executor.
 */
export function codeModeFunctions(
  { capabilities }: CodeExecutor,
  { tools = {}, approveHostCall }: CodeExecutionToolOptions,
): HostFunction[] {
  const functions = hostFunctionsFrom(tools);
  const unapproved = approveHostCall ? undefined : functions.find(({ needsApproval }) => needsApproval !== false);
  if (unapproved) {
    throw new InvalidInputError(
      `The tool ${unapproved.name} needs approval, and running code cannot wait for the AI SDK to ask`,
      {
        remedy:
          "Give codeExecutionTool `approveHostCall`, or offer the tool to the model directly, where the AI SDK asks.",
      },
    );
  }
  // Which languages there are may be known only once the executor has started; it then refuses the call by itself.
  if (functions.length > 0 && capabilities.languages.length > 0 && capabilities.hostFunctions.length === 0) {
    throw new InvalidInputError("`tools` cannot be offered: code in this executor cannot call host functions", {
      remedy: "Leave them out, or use an executor whose `capabilities.hostFunctions` is not empty.",
    });
  }
  return functions;
}

/** The tools of one call of the model as functions, and which of their calls wait for approval. */
export class WaitingCalls {
  readonly #options: CodeExecutionToolOptions;
  readonly #tell: () => void;
  readonly #waiting = new Map<string, WaitingCall>();

  /** @param tell - called when `calls` has changed. */
  constructor(options: CodeExecutionToolOptions, tell: () => void) {
    this.#options = options;
    this.#tell = tell;
  }

  /** Those that wait now, the oldest first. */
  get calls(): readonly WaitingCall[] {
    return [...this.#waiting.values()];
  }

  /** @param callOptions - what the tools are told of the call that runs the code. */
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

  /** Shows a call once it has waited for some time: programs that approve by rules answer at once. */
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
    // Nobody waits for an answer any more, which may never come.
    signal.addEventListener("abort", hide, { once: true });
    return hide;
  }
}
