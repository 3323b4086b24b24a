import { InvalidInputError } from "@fenced/core";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { checkAgentMessage, checkChatMessage } from "../messages/check-message.ts";
import { isPiece } from "../messages/message-guards.ts";
import { watchTurn } from "../telemetry/watch-turn.ts";
import { type ChatAgent, isResponse, type AgentResponse } from "./chat-agent.ts";

/**
 * Runs an agent's turn: yields events, chunks and the answer as plain messages.
 *
 * @param how - `onAnswer` is called before the answer is yielded, with everything of the turn that is kept; the answer is
 * last.
 * @throws InvalidInputError if the agent does not answer, continues after its answer, or yields something that is not a
 * message.
 */
export async function* takeTurn(
  agent: Pick<ChatAgent, "name" | "description" | "onMessagesStream">,
  messages: readonly ChatMessage[],
  {
    signal,
    onAnswer,
  }: {
    readonly signal: AbortSignal;
    readonly onAnswer: (news: readonly AgentMessage[], answer: ChatMessage) => void | Promise<void>;
  },
): AsyncGenerator<AgentMessage, void, void> {
  const news: AgentMessage[] = [];
  let answered = false;
  for await (const item of watchTurn(agent, messages, { signal })) {
    if (answered) throw notOneResponse(`Agent "${agent.name}" yielded more after its AgentResponse`);
    answered = isResponse(item);
    if (isResponse(item)) yield* unseen(item, news, agent.name);
    const message = isResponse(item) ? checkChatMessage(item.chatMessage, `The answer of agent "${agent.name}"`) : item;
    if (!isPiece(message)) {
      news.push(checkAgentMessage(message, `What agent "${agent.name}" yielded`));
    }
    if (isResponse(item)) await onAnswer(news, item.chatMessage);
    yield message;
  }
  if (!answered) throw notOneResponse(`The turn of agent "${agent.name}" ended without an AgentResponse`);
}

/** Messages that an agent reports only with its answer, such as one that asks another agent. */
function* unseen(
  { innerMessages }: AgentResponse,
  news: AgentMessage[],
  name: string,
): Generator<AgentMessage, void, void> {
  const seen = new Set(news.map(({ id }) => id));
  for (const message of innerMessages) {
    if (seen.has(message.id)) continue;
    news.push(checkAgentMessage(message, `An inner message of agent "${name}"`));
    yield message;
  }
}

function notOneResponse(problem: string): InvalidInputError {
  return new InvalidInputError(problem, {
    remedy: "Make its onMessagesStream() yield exactly one AgentResponse, as its last item.",
  });
}
