import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { isResponse, type AgentResponse } from "./chat-agent.ts";

/**
 * Passes a turn's items on. If a turn fails, is aborted, or is left before its response, removes its messages from the
 * context again: no tool call remains without its result, and the same messages can be passed again.
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
