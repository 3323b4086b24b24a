import { type CodeBlock, type ModelMessage, showHidden } from "@fenced/core";
import { WaitingForPersonError } from "../agents/waiting-for-person-error.ts";
import { abortable } from "../common/abortable.ts";
import type { SignalOptions } from "../common/signal-option.ts";

const graceMs = 1000;

/** Code to approve. */
export interface ApprovalRequest {
  /**
   * All blocks as one Markdown text, for a person to read. Characters that could hide code on a screen, such as escape
   * sequences and direction marks, are shown as `\u{1b}`; `blocks` contains the code as it runs.
   */
  readonly code: string;
  /** The blocks in the order in which they would run. */
  readonly blocks: readonly CodeBlock[];
  /** The conversation that led to it: what the agent's model saw, or the messages that the agent received. */
  readonly context: readonly ModelMessage[];
}

/** A decision about code. */
export interface ApprovalResponse {
  readonly approved: boolean;
  /** If the code is refused: why, for the model that wrote it. */
  readonly reason: string;
}

/**
 * Decides whether code may run. An error that it throws ends the agent's turn, and the code does not run. `undefined`
 * means that there is no decision yet: the run ends with `waitingFor`, and the next run, in this process or in another
 * that loaded the state, asks again about the same code. An agent with a `modelClient` keeps what its model wrote and
 * continues from there.
 */
export type ApprovalFunc = (
  request: ApprovalRequest,
  options: SignalOptions,
) => ApprovalResponse | undefined | Promise<ApprovalResponse | undefined>;

/**
 * Asks for approval.
 *
 * @throws WaitingForPersonError if there is no decision yet.
 */
export async function askApproval(
  approvalFunc: ApprovalFunc,
  request: Omit<ApprovalRequest, "code">,
  { source, signal }: { readonly source: string; readonly signal: AbortSignal | undefined },
): Promise<ApprovalResponse> {
  const code = showHidden(request.blocks.map(toFence).join("\n\n").replaceAll("\r\n", "\n"));
  const response = await abortable(approvalFunc({ ...request, code }, { signal }), { signal, graceMs });
  if (response !== undefined) return response;
  throw new WaitingForPersonError({ source, reason: `The code of "${source}" is waiting for approval.` });
}

// The fence is longer than any inside the code, so that code cannot pretend to end the block.
function toFence({ language, code }: CodeBlock): string {
  let longest = 2;
  for (const [ticks] of code.matchAll(/`+/g)) longest = Math.max(longest, ticks.length);
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${code.trimEnd()}\n${fence}`;
}
