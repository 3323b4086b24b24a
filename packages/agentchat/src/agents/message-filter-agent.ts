import {
  type Component,
  type ComponentModel,
  componentModelSchema,
  defineComponent,
  type JsonObject,
} from "@fenced/core";
import { checkOptions, objectOption, optionsSchema, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import { jsonObjectSchema } from "../common/json.ts";
import { parseState } from "../common/parse-state.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { agentName, BaseChatAgent } from "./base-chat-agent.ts";
import type { AgentResponse, ChatAgent } from "./chat-agent.ts";

/** Which messages of one source an agent gets. */
export interface PerSourceFilter {
  /** Whose messages: an agent's name, or `"user"`. */
  readonly source: string;
  /** Only the first or the last of them. Default: all. */
  readonly position?: "first" | "last" | undefined;
  /** How many of them, with `position`. Default: 1. */
  readonly count?: number | undefined;
}

/** Options of a `MessageFilterAgent`. */
export interface MessageFilterAgentOptions {
  /** See `BaseChatAgentOptions.name`; usually the agent's own, since its answers carry that one. */
  readonly name: string;
  /** The agent that gets the messages. You own it. */
  readonly agent: ChatAgent;
  /** The sources to let through, each at most once; messages of others are dropped. */
  readonly perSource: readonly PerSourceFilter[];
}

const perSourceFilter: z.ZodType<PerSourceFilter> = optionsSchema({
  source: z.string().min(1),
  position: z.enum(["first", "last"]).exactOptional(),
  count: wholeNumberOption({ from: 1 }).exactOptional(),
} satisfies OptionSchemas<PerSourceFilter>).refine(
  ({ position, count }) => position !== undefined || count === undefined,
  { path: ["count"], error: 'needs `position`: "first" or "last"' },
);

const filterOptions: z.ZodType<MessageFilterAgentOptions> = optionsSchema({
  name: agentName,
  agent: objectOption<ChatAgent>(["onMessagesStream"], "an agent"),
  perSource: z
    .array(perSourceFilter)
    .refine(
      (filters) => new Set(filters.map(({ source }) => source)).size === filters.length,
      "must name each source once",
    ),
} satisfies OptionSchemas<MessageFilterAgentOptions>);

const configSchema = z.strictObject({
  name: z.string(),
  agent: componentModelSchema,
  perSource: z.array(
    z.strictObject({
      source: z.string(),
      position: z.enum(["first", "last"]).optional(),
      count: z.number().optional(),
    }),
  ),
});
const stateSchema = z.object({ agent: jsonObjectSchema });

/**
 * An agent that hears only some of what it is told: of the new messages of each turn, those of certain sources, all of them or
 * the first or last ones. They keep their order. Keeps a reviewer from reading a whole loop of a graph, for example.
 *
 * @example
 * const reviewer = new MessageFilterAgent({
 *   name: "reviewer",
 *   agent: new AssistantAgent({ name: "reviewer", modelClient }),
 *   perSource: [{ source: "user", position: "first" }, { source: "writer", position: "last" }],
 * });
 */
export class MessageFilterAgent extends BaseChatAgent {
  /** Creates the agent that `dumpComponent` described. It owns the agent inside. */
  static readonly component: Component<MessageFilterAgent> = defineComponent({
    provider: "@fenced/agentchat:MessageFilterAgent",
    componentType: "agent",
    schema: configSchema,
    load: async ({ agent, ...rest }, context) => {
      const inner = await context.load<ChatAgent>(agent, "agent");
      const loaded = new MessageFilterAgent({ ...rest, agent: inner });
      loaded.own(inner);
      return loaded;
    },
  });

  readonly #agent: ChatAgent;
  readonly #perSource: readonly PerSourceFilter[];

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: MessageFilterAgentOptions) {
    const { name, agent, perSource } = checkOptions(filterOptions, options, "MessageFilterAgent");
    super({ name, description: agent.description });
    this.#agent = agent;
    this.#perSource = perSource;
  }

  override dumpComponent(): ComponentModel {
    const agent = this.#agent.dumpComponent();
    return MessageFilterAgent.component.dump({ name: this.name, agent, perSource: this.#perSource });
  }

  override onMessagesStream(
    messages: readonly ChatMessage[],
    options: SignalOptions = {},
  ): AsyncGenerator<AgentMessage | AgentResponse, void, void> {
    return this.turn(messages, options, (signal) => this.#pass(this.#filter(messages), signal));
  }

  override async onPause(): Promise<void> {
    await this.#agent.onPause?.();
  }

  override async onResume(): Promise<void> {
    await this.#agent.onResume?.();
  }

  override async reset(): Promise<void> {
    this.assertIdle("be reset");
    await this.#agent.reset();
  }

  override async saveState(): Promise<JsonObject> {
    this.assertIdle("save its state");
    return { agent: await this.#agent.saveState() };
  }

  override async loadState(state: JsonObject): Promise<void> {
    this.assertIdle("load a state");
    await this.#agent.loadState(parseState(stateSchema, state, `agent "${this.name}"`).agent);
  }

  async *#pass(
    messages: readonly ChatMessage[],
    signal: AbortSignal,
  ): AsyncGenerator<AgentMessage | AgentResponse, void, void> {
    yield* this.#agent.onMessagesStream(messages, { signal });
  }

  #filter(messages: readonly ChatMessage[]): ChatMessage[] {
    const kept = new Set(
      this.#perSource.flatMap(({ source, position, count = 1 }) => {
        const own = messages.filter((message) => message.source === source);
        if (position === undefined) return own;
        return position === "first" ? own.slice(0, count) : own.slice(-count);
      }),
    );
    return messages.filter((message) => kept.has(message));
  }
}
