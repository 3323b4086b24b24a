import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import { callbackOption, checkOptions, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import { abortable } from "../common/abortable.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { handoffMessage, textMessage, userInputRequestedEvent } from "../messages/create-message.ts";
import { agentName, BaseChatAgent } from "./base-chat-agent.ts";
import type { AgentResponse } from "./chat-agent.ts";
import { readLine } from "./read-line.ts";
import { Turn } from "./turn.ts";
import { WaitingForPersonError } from "./waiting-for-person-error.ts";

const graceMs = 1000;

/**
 * Gets an answer from a person. `undefined` means that there is no answer yet: the run ends with `waitingFor`, and the
 * next run, in this process or in another that loaded the state, asks again.
 */
export type InputFunc = (prompt: string, options: SignalOptions) => string | undefined | Promise<string | undefined>;

/** Options of `UserProxyAgent`. */
export interface UserProxyAgentOptions {
  /** See `BaseChatAgentOptions.name`. */
  readonly name: string;
  /** The person's role, for selectors and tools. Default: a general text. */
  readonly description?: string | undefined;
  /** Gets the answer. Default: reads a line from the terminal. */
  readonly inputFunc?: InputFunc | undefined;
}

const configSchema: z.ZodType<UserProxyAgentOptions> = optionsSchema({
  name: agentName,
  description: z.string().exactOptional(),
  inputFunc: callbackOption<InputFunc>().exactOptional(),
} satisfies OptionSchemas<UserProxyAgentOptions>);

/**
 * A person as an agent: each turn waits for an answer. If an agent handed the chat to the person, the answer hands it
 * back to that agent.
 */
export class UserProxyAgent extends BaseChatAgent {
  /** Creates the agent that `dumpComponent` described; it reads from the terminal. */
  static readonly component: Component<UserProxyAgent> = defineComponent({
    provider: "@fenced/agentchat:UserProxyAgent",
    componentType: "agent",
    schema: configSchema,
    load: (config) => new UserProxyAgent(config),
  });

  readonly #inputFunc: InputFunc | undefined;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: UserProxyAgentOptions) {
    const { name, description = "A person.", inputFunc } = checkOptions(configSchema, options, "UserProxyAgent");
    super({ name, description });
    this.#inputFunc = inputFunc;
  }

  /** @throws ComponentError if there is an `inputFunc`: functions cannot be saved. */
  override dumpComponent(): ComponentModel {
    const settings = { name: this.name, description: this.description, inputFunc: this.#inputFunc };
    return UserProxyAgent.component.dump(settings);
  }

  /** A `UserInputRequestedEvent`, then the answer. */
  override onMessagesStream(
    messages: readonly ChatMessage[],
    options: SignalOptions = {},
  ): AsyncGenerator<AgentMessage | AgentResponse, void, void> {
    return this.turn(messages, options, (signal) => this.#takeTurn(messages, signal));
  }

  async *#takeTurn(
    messages: readonly ChatMessage[],
    signal: AbortSignal,
  ): AsyncGenerator<AgentMessage | AgentResponse, void, void> {
    const turn = new Turn(this.name, signal);
    yield turn.record(userInputRequestedEvent({ source: this.name }));
    const input = (this.#inputFunc ?? readLine)(`${this.name}, your answer: `, { signal });
    const content = await abortable(input, { signal, graceMs });
    if (content === undefined) {
      throw new WaitingForPersonError({ source: this.name, reason: `"${this.name}" has not answered yet.` });
    }

    const last = messages.at(-1);
    const isMine = last?.type === "HandoffMessage" && last.target === this.name;
    const common = { source: this.name, content };
    yield turn.response(isMine ? handoffMessage({ ...common, target: last.source }) : textMessage(common));
  }
}
