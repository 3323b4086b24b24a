import {
  type ChatCompletionClient,
  type Component,
  type ComponentModel,
  componentModelSchema,
  defineComponent,
  InvalidInputError,
  type JsonObject,
} from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import { jsonObjectSchema } from "../common/json.ts";
import { parseState } from "../common/parse-state.ts";
import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import { UnboundedChatCompletionContext } from "../contexts/unbounded-chat-completion-context.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { isChatMessage } from "../messages/message-guards.ts";
import { messageToModelMessages } from "../messages/message-to-model-messages.ts";
import { askForSpeaker, defaultSelectorPrompt } from "./ask-for-speaker.ts";
import { BaseGroupChat, type Speakers } from "./base-group-chat.ts";
import { dumpGroupChat, groupChatConfig, loadGroupChat } from "./group-chat-config.ts";
import { historyText } from "./history-text.ts";
import { type SelectorGroupChatOptions, selectorGroupChatOptions } from "./selector-group-chat-options.ts";

const configSchema = z.strictObject({
  ...groupChatConfig,
  modelClient: componentModelSchema,
  selectorPrompt: z.string().optional(),
  allowRepeatedSpeaker: z.boolean().optional(),
  maxSelectorAttempts: z.number().optional(),
  modelClientStream: z.boolean().optional(),
  modelContext: componentModelSchema.optional(),
});
const stateSchema = z.strictObject({ lastSpeaker: z.string().nullable(), modelContext: jsonObjectSchema });

/**
 * A team in which a model chooses the next speaker, based on names, descriptions and the conversation. Every agent
 * hears what the others say.
 *
 * @example
 * const team = new SelectorGroupChat({
 *   participants: [planner, coder, runner],
 *   modelClient,
 *   selectorFunc: (history) => (history.at(-1)?.source === "coder" ? "runner" : undefined),
 *   terminationCondition: new TextMentionTermination("TERMINATE").or(new MaxMessageTermination(25)),
 * });
 */
export class SelectorGroupChat extends BaseGroupChat {
  /** Creates the team that `dumpComponent` described. It owns its participants and disposes of them when it is disposed of. */
  static readonly component: Component<SelectorGroupChat> = defineComponent({
    provider: "@fenced/agentchat:SelectorGroupChat",
    componentType: "team",
    schema: configSchema,
    load: async (config, context) => {
      const { modelClient, modelContext, ...rest } = await loadGroupChat(config, context);
      const team = new SelectorGroupChat({
        ...rest,
        modelClient: await context.load<ChatCompletionClient>(modelClient, "modelClient"),
        ...(modelContext && { modelContext: await context.load<ChatCompletionContext>(modelContext, "modelContext") }),
      });
      team.ownParticipants();
      return team;
    },
  });

  readonly #options: SelectorGroupChatOptions;
  readonly #modelContext: ChatCompletionContext;
  #lastSpeaker: string | undefined;

  /** @throws InvalidInputError if there are fewer than two participants, two share a name, or an option is unknown or wrong. */
  constructor(options: SelectorGroupChatOptions) {
    const checked = checkOptions(selectorGroupChatOptions, options, "SelectorGroupChat");
    super({ description: "A team of agents in which a model chooses who speaks next.", ...checked });
    if (checked.participants.length < 2) {
      throw new InvalidInputError("A SelectorGroupChat needs at least two participants", {
        remedy: "Add another participant, or use a RoundRobinGroupChat.",
      });
    }
    this.#options = checked;
    this.#modelContext = checked.modelContext ?? new UnboundedChatCompletionContext();
  }

  /** @throws ComponentError if there is a `selectorFunc` or a `candidateFunc`: functions cannot be saved. */
  override dumpComponent(): ComponentModel {
    const { name, description } = this;
    return SelectorGroupChat.component.dump({
      ...dumpGroupChat({ ...this.#options, name, description }),
      modelClient: this.#options.modelClient.dumpComponent(),
      modelContext: this.#options.modelContext?.dumpComponent(),
    });
  }

  protected override async *selectSpeakers(
    history: readonly AgentMessage[],
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<AgentMessage, Speakers, void> {
    const { participants, modelClient, modelClientStream = false, allowRepeatedSpeaker = false } = this.#options;
    const { selectorFunc, selectorPrompt = defaultSelectorPrompt, maxSelectorAttempts = 3 } = this.#options;
    const chosen = await selectorFunc?.(history);
    if (chosen !== undefined && chosen !== null) return [this.#known(chosen, "selectorFunc")];
    const candidates = await this.#candidates(history);
    const [first] = candidates;
    if (candidates.length === 1 || first === undefined) return candidates;
    const asked = yield* askForSpeaker({
      modelClient,
      prompt: selectorPrompt,
      participants,
      candidates,
      history: historyText(await this.#modelContext.getMessages()),
      maxAttempts: maxSelectorAttempts,
      notAgain: allowRepeatedSpeaker || this.#options.candidateFunc !== undefined ? undefined : this.#lastSpeaker,
      stream: modelClientStream,
      source: this.name,
      signal,
    });
    const last = candidates.find((name) => name === this.#lastSpeaker);
    return [asked ?? last ?? first];
  }

  protected override async heard(messages: readonly AgentMessage[], speaker?: string): Promise<void> {
    if (speaker !== undefined) this.#lastSpeaker = speaker;
    const said = messages.filter(isChatMessage);
    for (const message of said.flatMap(messageToModelMessages)) await this.#modelContext.addMessage(message);
  }

  protected override async resetManager(): Promise<void> {
    this.#lastSpeaker = undefined;
    await this.#modelContext.reset();
  }

  protected override async saveManager(): Promise<JsonObject> {
    return { lastSpeaker: this.#lastSpeaker ?? null, modelContext: await this.#modelContext.saveState() };
  }

  protected override async loadManager(state: JsonObject): Promise<void> {
    const { lastSpeaker, modelContext } = parseState(stateSchema, state, `team "${this.name}"`);
    await this.#modelContext.loadState(modelContext);
    this.#lastSpeaker = lastSpeaker ?? undefined;
  }

  async #candidates(history: readonly AgentMessage[]): Promise<readonly string[]> {
    const { candidateFunc, allowRepeatedSpeaker = false } = this.#options;
    if (candidateFunc === undefined) {
      return this.participantNames.filter((name) => allowRepeatedSpeaker || name !== this.#lastSpeaker);
    }
    const candidates = await candidateFunc(history);
    if (candidates.length === 0) {
      throw new InvalidInputError("candidateFunc returned no candidates", { remedy: "Return at least one name." });
    }
    return candidates.map((name) => this.#known(name, "candidateFunc"));
  }

  #known(name: string, by: string): string {
    if (this.participantNames.includes(name)) return name;
    throw new InvalidInputError(`${by} returned "${name}", who is not a participant of team "${this.name}"`, {
      remedy: `The participants are ${this.participantNames.join(", ")}.`,
    });
  }
}
