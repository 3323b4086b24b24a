import { InvalidInputError } from "@fenced/core";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { watchTurn } from "../telemetry/watch-turn.ts";
import { type ChatAgent, isResponse, type Response } from "./chat-agent.ts";

/** How an agent takes a turn. */
export interface TakeTurnOptions {
  readonly signal: AbortSignal;
  /** Called with all that is to be kept of the turn, its answer last, before the answer is yielded. */
  readonly onAnswer: (news: readonly AgentMessage[], answer: ChatMessage) => void;
}

/**
 * Lets an agent answer: yields events, chunks and the answer as plain messages.
 *
 * @throws InvalidInputError if the agent does not answer, or does not end with its answer.
 */
export async function* takeTurn(
  agent: Pick<ChatAgent, "name" | "description" | "onMessagesStream">,
  messages: readonly ChatMessage[],
  { signal, onAnswer }: TakeTurnOptions,
): AsyncGenerator<AgentMessage, void, void> {
  const news: AgentMessage[] = [];
  let answered = false;
  for await (const item of watchTurn(agent, messages, { signal })) {
    if (answered) throw notOneResponse(`Agent "${agent.name}" went on after its Response`);
    answered = isResponse(item);
    if (isResponse(item)) yield* unseen(item, news);
    const message = isResponse(item) ? item.chatMessage : item;
    if (message.type !== "ModelClientStreamingChunkEvent") news.push(message);
    if (isResponse(item)) onAnswer(news, item.chatMessage);
    yield message;
  }
  if (!answered) throw notOneResponse(`The turn of agent "${agent.name}" ended without a Response`);
}

/** What an agent tells only along with its answer, as one does that asks another. */
function* unseen({ innerMessages }: Response, news: AgentMessage[]): Generator<AgentMessage, void, void> {
  const seen = new Set(news.map(({ id }) => id));
  for (const message of innerMessages) {
    if (seen.has(message.id)) continue;
    news.push(message);
    yield message;
  }
}

function notOneResponse(problem: string): InvalidInputError {
  return new InvalidInputError(problem, {
    remedy: "Let its onMessagesStream() yield exactly one Response, as its last item.",
  });
}
