import {
  type CodeExecutor,
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
    throw new InvalidInputError(`The tool ${unapproved.name} needs approval, which code that runs cannot wait for`, {
      remedy: "Give codeExecutionTool `approveHostCall`, or give the tool to the model itself, where the AI SDK asks.",
    });
  }
  // Which languages there are may be known only once the executor has started; it then refuses the call by itself.
  if (functions.length > 0 && capabilities.languages.length > 0 && capabilities.hostFunctions.length === 0) {
    throw new InvalidInputError("The executor cannot run `tools`: its code cannot call functions of the host", {
      remedy: "Leave them out, or use an executor whose `capabilities.hostFunctions` names languages.",
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
      const text = JSON.stringify(input);
      const shown = text.length > maxProgressCharacters ? `${text.slice(0, maxProgressCharacters)}…` : text;
      this.#waiting.set(callId, { callId, name, input: shown });
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
