import { type Component, type ComponentModel, defineComponent, InvalidInputError, type JsonObject } from "@fenced/core";
import { checkOptions, objectOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { ChatAgent } from "../agents/chat-agent.ts";
import { parseState } from "../common/parse-state.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { BaseGroupChat, type Speakers } from "./base-group-chat.ts";
import { dumpGroupChat, groupChatConfig, loadGroupChat } from "./group-chat-config.ts";
import { type GroupChatOptions, groupChatOptions } from "./group-chat-options.ts";

/** Options of `Swarm`. */
export interface SwarmOptions extends GroupChatOptions {
  /** Agents, not teams, with different names; the first one begins. You own them. */
  readonly participants: readonly ChatAgent[];
}

const swarmOptions: z.ZodType<SwarmOptions> = optionsSchema({
  ...groupChatOptions,
  participants: z.array(objectOption<ChatAgent>(["onMessagesStream", "saveState"], "an agent")).min(1),
} satisfies OptionSchemas<SwarmOptions>);

const stateSchema = z.strictObject({ target: z.string().nullable() });

/**
 * Agents that hand the chat to each other: the target of the last `HandoffMessage` speaks until it hands the chat on.
 * The first participant begins.
 *
 * A handoff to someone outside the team, such as a person, needs a `HandoffTermination` for that name, which ends the
 * run. Start the next run with their `HandoffMessage`.
 *
 * @example
 * const team = new Swarm({
 *   participants: [new AssistantAgent({ name: "support", modelClient, handoffs: ["refunds", "user"] }), refunds],
 *   terminationCondition: new HandoffTermination("user"),
 * });
 * await team.run({ task: "I want my money back." });
 * await team.run({ task: handoffMessage({ source: "user", target: "refunds", content: "Order 7." }) });
 */
export class Swarm extends BaseGroupChat {
  /** Creates the team that `dumpComponent` described. It owns its agents and disposes of them when it is disposed of. */
  static readonly component: Component<Swarm> = defineComponent({
    provider: "@fenced/agentchat:Swarm",
    componentType: "team",
    schema: z.strictObject(groupChatConfig),
    load: async (config, context) => {
      const team = new Swarm(await loadGroupChat(config, context));
      team.ownParticipants();
      return team;
    },
  });

  readonly #options: SwarmOptions;
  #target: string | undefined;

  /**
   * @throws InvalidInputError if there are no participants, two share a name, one is a team, or an option is unknown or
   * wrong.
   */
  constructor(options: SwarmOptions) {
    const checked = checkOptions(swarmOptions, options, "Swarm");
    super({ description: "A team of agents that hand the chat to each other.", ...checked });
    this.#options = checked;
  }

  override dumpComponent(): ComponentModel {
    const { name, description } = this;
    return Swarm.component.dump(dumpGroupChat({ ...this.#options, name, description }));
  }

  protected override selectSpeakers(): Speakers {
    return [this.#speaker(this.#target)];
  }

  protected override checkStart(task: readonly ChatMessage[]): void {
    this.#speaker(handoffIn(task) ?? this.#target);
  }

  protected override heard(messages: readonly AgentMessage[], speaker?: string): void {
    // Only a turn's answer counts: agents behind tools have their own handoffs.
    const handoff = handoffIn(speaker === undefined ? messages : messages.slice(-1));
    if (handoff !== undefined) this.#target = handoff;
  }

  protected override resetManager(): void {
    this.#target = undefined;
  }

  protected override saveManager(): JsonObject {
    return { target: this.#target ?? null };
  }

  protected override loadManager(state: JsonObject): void {
    this.#target = parseState(stateSchema, state, `team "${this.name}"`).target ?? undefined;
  }

  #speaker(target: string | undefined): string {
    const speaker = target ?? this.participantNames[0] ?? "";
    if (this.participantNames.includes(speaker)) return speaker;
    throw new InvalidInputError(`The chat was handed off to "${speaker}", who is not a participant`, {
      remedy: `End the run there with new HandoffTermination("${speaker}"), and start the next one with a handoffMessage() to ${this.participantNames.join(" or ")}.`,
    });
  }
}

function handoffIn(messages: readonly AgentMessage[]): string | undefined {
  return messages.findLast((message) => message.type === "HandoffMessage")?.target;
}
