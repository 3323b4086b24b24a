import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { isResponse, type AgentResponse } from "./chat-agent.ts";

/**
 * Passes a turn's items on. A turn that fails, is aborted or is left before its response takes its messages back out
 * of the context: no tool call stays there without its result, and the same messages can be given again.
 */
export async function* undoUnfinishedTurn(
  context: ChatCompletionContext,
  turn: AsyncIterable<AgentMessage | AgentResponse>,
): AsyncGenerator<AgentMessage | AgentResponse, void, void> {
  const before = await context.saveState();
  let finished = false;
  try {
    for await (const item of turn) {
      if (isResponse(item)) finished = true;
      yield item;
    }
  } finally {
    if (!finished) await context.loadState(before);
  }
}
