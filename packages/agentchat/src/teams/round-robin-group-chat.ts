import { type Component, type ComponentModel, defineComponent, InvalidInputError, type JsonObject } from "@fenced/core";
import { checkOptions, optionsSchema } from "@fenced/core/options";
import * as z from "zod";
import { parseState } from "../common/parse-state.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseGroupChat, type Speakers } from "./base-group-chat.ts";
import { dumpGroupChat, groupChatConfig, loadGroupChat } from "./group-chat-config.ts";
import { type GroupChatOptions, groupChatOptions } from "./group-chat-options.ts";

/** Options of `RoundRobinGroupChat`. Its participants speak in the order of the list. */
export type RoundRobinGroupChatOptions = GroupChatOptions;

const optionSchemas: z.ZodType<RoundRobinGroupChatOptions> = optionsSchema(groupChatOptions);
const stateSchema = z.strictObject({ nextSpeaker: z.int().min(0) });

/**
 * Agents that speak one after another, in the order of the list. Every agent hears what the others say.
 *
 * Without a condition and `maxTurns`, the chat continues until it is aborted.
 *
 * @example
 * const team = new RoundRobinGroupChat({
 *   participants: [coder, runner],
 *   terminationCondition: new MaxMessageTermination(10).or(new TextMentionTermination("TERMINATE")),
 * });
 * const { messages, stopReason } = await team.run({ task: "Plot the temperatures of July." });
 */
export class RoundRobinGroupChat extends BaseGroupChat {
  /** Creates the team that `dumpComponent` described. It owns its participants and disposes of them when it is disposed of. */
  static readonly component: Component<RoundRobinGroupChat> = defineComponent({
    provider: "@fenced/agentchat:RoundRobinGroupChat",
    componentType: "team",
    schema: z.strictObject(groupChatConfig),
    load: async (config, context) => {
      const team = new RoundRobinGroupChat(await loadGroupChat(config, context));
      team.ownParticipants();
      return team;
    },
  });

  readonly #options: RoundRobinGroupChatOptions;
  #nextSpeaker = 0;

  /** @throws InvalidInputError if there are no participants, two share a name, or an option is unknown or wrong. */
  constructor(options: RoundRobinGroupChatOptions) {
    const checked = checkOptions(optionSchemas, options, "RoundRobinGroupChat");
    super({ description: "A team of agents that speak one after another.", ...checked });
    this.#options = checked;
  }

  override dumpComponent(): ComponentModel {
    const { name, description } = this;
    return RoundRobinGroupChat.component.dump(dumpGroupChat({ ...this.#options, name, description }));
  }

  protected override selectSpeakers(): Speakers {
    return this.participantNames.slice(this.#nextSpeaker, this.#nextSpeaker + 1);
  }

  protected override heard(_messages: readonly AgentMessage[], speaker?: string): void {
    if (speaker === undefined) return;
    this.#nextSpeaker = (this.participantNames.indexOf(speaker) + 1) % this.participantNames.length;
  }

  protected override resetManager(): void {
    this.#nextSpeaker = 0;
  }

  protected override saveManager(): JsonObject {
    return { nextSpeaker: this.#nextSpeaker };
  }

  protected override loadManager(state: JsonObject): void {
    const { nextSpeaker } = parseState(stateSchema, state, `team "${this.name}"`);
    if (nextSpeaker >= this.participantNames.length) {
      throw new InvalidInputError("The state belongs to a team with more participants", {
        remedy: "Load it into a team with the same participants in the same order.",
      });
    }
    this.#nextSpeaker = nextSpeaker;
  }
}
