import { InvalidInputError } from "@fenced/core";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { checkAgentMessage, checkChatMessage } from "../messages/check-message.ts";
import { isPiece } from "../messages/message-guards.ts";
import { watchTurn } from "../telemetry/watch-turn.ts";
import { type ChatAgent, isResponse, type AgentResponse } from "./chat-agent.ts";

/** How an agent takes a turn. */
export interface TakeTurnOptions {
  readonly signal: AbortSignal;
  /** Called with all that is to be kept of the turn, its answer last, before the answer is yielded. */
  readonly onAnswer: (news: readonly AgentMessage[], answer: ChatMessage) => void | Promise<void>;
}

/**
 * Lets an agent answer: yields events, chunks and the answer as plain messages.
 *
 * @throws InvalidInputError if the agent does not answer, does not end with its answer, or yields something that is not a message.
 */
export async function* takeTurn(
  agent: Pick<ChatAgent, "name" | "description" | "onMessagesStream">,
  messages: readonly ChatMessage[],
  { signal, onAnswer }: TakeTurnOptions,
): AsyncGenerator<AgentMessage, void, void> {
  const news: AgentMessage[] = [];
  let answered = false;
  for await (const item of watchTurn(agent, messages, { signal })) {
    if (answered) throw notOneResponse(`Agent "${agent.name}" went on after its AgentResponse`);
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

/** What an agent tells only along with its answer, as one does that asks another. */
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
    remedy: "Let its onMessagesStream() yield exactly one AgentResponse, as its last item.",
  });
}
