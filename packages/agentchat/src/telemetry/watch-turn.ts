import { type Operation, watchStream } from "@fenced/core/telemetry";
import { type ChatAgent, isResponse, type AgentResponse } from "../agents/chat-agent.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { agentDuration, conventions, usageAttributes } from "./conventions.ts";

type Items = AsyncGenerator<AgentMessage | AgentResponse, void, void>;

/** Runs and watches an agent's turn. */
export function watchTurn(
  agent: Pick<ChatAgent, "name" | "description" | "onMessagesStream">,
  messages: readonly ChatMessage[],
  options: SignalOptions,
): Items {
  const { name, description } = agent;
  return watchStream(
    {
      ...conventions,
      name: `invoke_agent ${name}`,
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.agent.description": description,
      },
      duration: agentDuration,
      metricAttributes: { "gen_ai.agent.name": name },
    },
    (operation) => sumUsage(operation, agent.onMessagesStream(messages, options)),
  );
}

/** Passes a turn's items on, and sums the tokens that its messages report. */
async function* sumUsage(operation: Operation, items: AsyncIterable<AgentMessage | AgentResponse>): Items {
  const total = { promptTokens: 0, completionTokens: 0 };
  try {
    for await (const item of items) {
      const { modelsUsage } = isResponse(item) ? item.chatMessage : item;
      total.promptTokens += modelsUsage?.promptTokens ?? 0;
      total.completionTokens += modelsUsage?.completionTokens ?? 0;
      yield item;
    }
  } finally {
    operation.set(usageAttributes(total));
  }
}
