import type { CodeBlock, ModelMessage } from "@fenced/core";
import { abortable } from "../common/abortable.ts";
import type { SignalOptions } from "../common/signal-option.ts";

const graceMs = 1000;

/** Code that wants to run. */
export interface ApprovalRequest {
  /** All blocks as one Markdown text, for a person to read. */
  readonly code: string;
  /** The blocks in the order in which they would run. */
  readonly blocks: readonly CodeBlock[];
  /** The conversation that led to it: what the agent's model saw, or the messages that the agent received. */
  readonly context: readonly ModelMessage[];
}

/** The decision. */
export interface ApprovalResponse {
  readonly approved: boolean;
  /** Told to the model that wrote the code if it is refused. */
  readonly reason: string;
}

/** Decides whether code may run. What it throws ends the agent's turn, and the code does not run. */
export type ApprovalFunc = (
  request: ApprovalRequest,
  options: SignalOptions,
) => ApprovalResponse | Promise<ApprovalResponse>;

/** Asks for approval. */
export async function askApproval(
  approvalFunc: ApprovalFunc,
  request: Omit<ApprovalRequest, "code">,
  signal: AbortSignal | undefined,
): Promise<ApprovalResponse> {
  const code = request.blocks.map(toFence).join("\n\n");
  return abortable(approvalFunc({ ...request, code }, { signal }), { signal, graceMs });
}

// The fence is longer than any inside the code, so that no code can show as something else than it is.
function toFence({ language, code }: CodeBlock): string {
  const longest = Math.max(2, ...Array.from(code.matchAll(/`+/g), ([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${code.trimEnd()}\n${fence}`;
}
