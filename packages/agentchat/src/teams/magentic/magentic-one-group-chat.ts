import {
  type ChatCompletionClient,
  type Component,
  type ComponentModel,
  componentModelSchema,
  defineComponent,
  InvalidInputError,
  type JsonObject,
  type ModelMessage,
} from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import { fillPlaceholders } from "../../common/fill-placeholders.ts";
import { toJson } from "../../common/json.ts";
import { parseState } from "../../common/parse-state.ts";
import type { AgentMessage } from "../../messages/agent-event.ts";
import { chatMessageSchema } from "../../messages/agent-message-schema.ts";
import type { ChatMessage } from "../../messages/chat-message.ts";
import { textMessage } from "../../messages/create-message.ts";
import { isChatMessage } from "../../messages/message-guards.ts";
import { messageToModelMessages } from "../../messages/message-to-model-messages.ts";
import { messageToText } from "../../messages/message-to-text.ts";
import { BaseGroupChat, type NextTurn } from "../base-group-chat.ts";
import { dumpGroupChat, groupChatConfig, loadGroupChat } from "../group-chat-config.ts";
import { LedgerModel } from "./ledger-model.ts";
import { magenticOneGroupChatOptions, type MagenticOneGroupChatOptions } from "./magentic-one-group-chat-options.ts";
import {
  defaultFinalAnswerPrompt,
  factsPrompt,
  factsUpdatePrompt,
  ledgerPrompt,
  planPrompt,
  planUpdatePrompt,
  progressPrompt,
} from "./prompts.ts";

const configSchema = z.strictObject({
  ...groupChatConfig,
  modelClient: componentModelSchema,
  maxStalls: z.number().optional(),
  finalAnswerPrompt: z.string().optional(),
});

const ledgerSchema = z.strictObject({
  task: z.string(),
  facts: z.string(),
  plan: z.string(),
  /** Turns that were given to participants. */
  rounds: z.int().min(0),
  stalls: z.int().min(0),
  isOver: z.boolean(),
});

/** What the team knows about its task. */
type Ledger = z.output<typeof ledgerSchema>;

const stateSchema = z.strictObject({
  ledger: ledgerSchema.nullable(),
  pending: z.array(chatMessageSchema),
  thread: z.array(chatMessageSchema),
  endReason: z.string(),
});

/** What is known so far about how the team goes on, until it is certain. */
interface Decision extends NextTurn {
  readonly ledger: Ledger;
  readonly thread: readonly ChatMessage[];
  readonly endReason?: string;
}

/**
 * A team that a model leads, as in Magentic-One. The model writes down what is known about the task and makes a plan; before each
 * turn it judges the progress as JSON, and tells one participant what to do. If turns bring nothing new, it writes both anew. At
 * the end it answers the task itself. With each plan the participants start over: they are reset, and told the task as text, the
 * facts and the plan.
 *
 * A task that comes while another one is not answered is added to the conversation; after that, it is a new task.
 *
 * @example
 * const team = new MagenticOneGroupChat({ participants: [coder, runner, surfer], modelClient });
 * const { messages } = await team.run({ task: "Which of our suppliers raised prices this year, and by how much?" });
 */
export class MagenticOneGroupChat extends BaseGroupChat {
  /** Creates the team that `dumpComponent` described. It owns its participants and disposes of them when it is disposed of. */
  static readonly component: Component<MagenticOneGroupChat> = defineComponent({
    provider: "@fenced/agentchat:MagenticOneGroupChat",
    componentType: "team",
    schema: configSchema,
    load: async (config, context) => {
      const { modelClient, ...rest } = await loadGroupChat(config, context);
      const team = new MagenticOneGroupChat({
        ...rest,
        modelClient: await context.load<ChatCompletionClient>(modelClient, "modelClient"),
      });
      team.ownParticipants();
      return team;
    },
  });

  readonly #options: MagenticOneGroupChatOptions;
  #ledger: Ledger | undefined;
  /** Messages of tasks that no ledger has yet. */
  #pending: readonly ChatMessage[] = [];
  /** What was said since the last plan. */
  #thread: readonly ChatMessage[] = [];
  #endReason = "The task is solved.";

  /** @throws InvalidInputError if there are no participants, two share a name, or an option is unknown or wrong. */
  constructor(options: MagenticOneGroupChatOptions) {
    const checked = checkOptions(magenticOneGroupChatOptions, options, "MagenticOneGroupChat");
    // This team ends at its limit with an answer, which is a turn of its own.
    const { maxTurns: _, ...rest } = checked;
    super({ description: "A team of agents that a model leads by a plan.", ...rest });
    this.#options = checked;
  }

  override dumpComponent(): ComponentModel {
    const { name, description } = this;
    return MagenticOneGroupChat.component.dump({
      ...dumpGroupChat({ ...this.#options, name, description }),
      modelClient: this.#options.modelClient.dumpComponent(),
    });
  }

  protected override async *selectSpeakers(
    _history: readonly AgentMessage[],
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<AgentMessage, NextTurn, void> {
    const model = new LedgerModel(this.#options.modelClient, this.name, signal);
    const decision = yield* this.#decide(model);
    const apply = (): void => {
      this.#ledger = decision.ledger;
      this.#thread = decision.thread;
      this.#pending = [];
      this.#endReason = decision.endReason ?? this.#endReason;
    };
    return { ...decision, apply };
  }

  protected override checkStart(task: readonly ChatMessage[]): void {
    if (task.length > 0 || this.#pending.length > 0 || this.#ledger !== undefined) return;
    throw new InvalidInputError(`Team "${this.name}" has no task`, { remedy: "Pass one: run({ task })." });
  }

  protected override heard(messages: readonly AgentMessage[], speaker?: string): void {
    const said = messages.filter(isChatMessage);
    if (speaker === undefined && (this.#ledger === undefined || this.#ledger.isOver)) {
      this.#pending = [...this.#pending, ...said];
    } else {
      this.#thread = [...this.#thread, ...said];
    }
  }

  protected override get endReason(): string {
    return this.#endReason;
  }

  protected override resetManager(): void {
    this.#ledger = undefined;
    this.#pending = [];
    this.#thread = [];
  }

  protected override saveManager(): JsonObject {
    return {
      ledger: this.#ledger ?? null,
      pending: toJson(this.#pending),
      thread: toJson(this.#thread),
      endReason: this.#endReason,
    };
  }

  protected override loadManager(state: JsonObject): void {
    const { ledger, pending, thread, endReason } = parseState(stateSchema, state, `team "${this.name}"`);
    this.#ledger = ledger ?? undefined;
    this.#pending = pending;
    this.#thread = thread;
    this.#endReason = endReason;
  }

  async *#decide(model: LedgerModel): AsyncGenerator<AgentMessage, Decision, void> {
    let ledger = this.#ledger;
    let thread = this.#thread;
    let said: readonly ChatMessage[] = [];
    let startOver = false;
    if (ledger === undefined || (ledger.isOver && this.#pending.length > 0)) {
      ledger = yield* this.#firstLedger(model);
      said = [this.#say(fillPlaceholders(ledgerPrompt, { ...wordsOf(ledger), team: this.#team }))];
      thread = said;
      startOver = true;
    }
    if (ledger.isOver) return { ledger, thread, speakers: [] };
    const { maxTurns = 20, maxStalls = 3 } = this.#options;
    for (;;) {
      if (ledger.rounds >= maxTurns) {
        const endReason = `The limit of ${maxTurns} turns is reached.`;
        return yield* this.#finish(model, { ledger, thread, said, startOver, speakers: [], endReason });
      }
      const question = fillPlaceholders(progressPrompt, {
        ...wordsOf(ledger),
        team: this.#team,
        names: this.participantNames.join(", "),
      });
      const progress = yield* model.progress(this.#conversation(thread, question), this.participantNames);
      if (progress.isRequestSatisfied) {
        const endReason = `The task is solved: ${progress.reason}`;
        return yield* this.#finish(model, { ledger, thread, said, startOver, speakers: [], endReason });
      }
      const stalled = !progress.isProgressBeingMade || progress.isInLoop;
      const stalls: number = stalled ? ledger.stalls + 1 : Math.max(0, ledger.stalls - 1);
      if (stalls < maxStalls) {
        const instruction = this.#say(progress.instruction);
        return {
          ledger: { ...ledger, stalls, rounds: ledger.rounds + 1 },
          thread: [...thread, instruction],
          say: [...said, instruction],
          startOver,
          speakers: [progress.nextSpeaker],
        };
      }
      // A model that sees no progress right after a new plan must not plan forever.
      ledger = { ...(yield* this.#nextLedger(model, ledger, thread)), rounds: ledger.rounds + 1 };
      said = [this.#say(fillPlaceholders(ledgerPrompt, { ...wordsOf(ledger), team: this.#team }))];
      thread = said;
      startOver = true;
    }
  }

  async *#firstLedger(model: LedgerModel): AsyncGenerator<AgentMessage, Ledger, void> {
    const task = this.#pending.map(messageToText).join("\n\n");
    const facts = yield* this.#factsAndPlan(model, [], fillPlaceholders(factsPrompt, { task }), planPrompt);
    return { task, ...facts, rounds: 0, stalls: 0, isOver: false };
  }

  async *#nextLedger(
    model: LedgerModel,
    ledger: Ledger,
    thread: readonly ChatMessage[],
  ): AsyncGenerator<AgentMessage, Ledger, void> {
    const updated = yield* this.#factsAndPlan(
      model,
      thread,
      fillPlaceholders(factsUpdatePrompt, wordsOf(ledger)),
      planUpdatePrompt,
    );
    return { ...ledger, ...updated, stalls: 0 };
  }

  async *#factsAndPlan(
    model: LedgerModel,
    thread: readonly ChatMessage[],
    question: string,
    prompt: string,
  ): AsyncGenerator<AgentMessage, Pick<Ledger, "facts" | "plan">, void> {
    const asked = this.#conversation(thread, question);
    const facts = yield* model.text(asked);
    const answered: ModelMessage[] = [...asked, { role: "assistant", content: facts, source: this.name }];
    const plan = yield* model.text([...answered, this.#ask(fillPlaceholders(prompt, { team: this.#team }))]);
    return { facts, plan };
  }

  async *#finish(
    model: LedgerModel,
    { said, ...decision }: Decision & { readonly said: readonly ChatMessage[] },
  ): AsyncGenerator<AgentMessage, Decision, void> {
    const { ledger, thread } = decision;
    const prompt = fillPlaceholders(this.#options.finalAnswerPrompt ?? defaultFinalAnswerPrompt, { task: ledger.task });
    const answer = this.#say(yield* model.text(this.#conversation(thread, prompt)));
    return { ...decision, ledger: { ...ledger, isOver: true }, thread: [...thread, answer], say: [...said, answer] };
  }

  get #team(): string {
    return this.#options.participants
      .map(({ name, description }) => `${name}: ${description.replaceAll("\n", " ")}`.trim())
      .join("\n");
  }

  #conversation(thread: readonly ChatMessage[], question: string): ModelMessage[] {
    const before = thread.flatMap((message): ModelMessage[] =>
      message.source === this.name
        ? [{ role: "assistant", content: messageToText(message), source: this.name }]
        : messageToModelMessages(message),
    );
    return [...before, this.#ask(question)];
  }

  #ask(content: string): ModelMessage {
    return { role: "user", content, source: this.name };
  }

  #say(content: string): ChatMessage {
    return textMessage({ source: this.name, content });
  }
}

/** What prompts need of a ledger. */
function wordsOf({ task, facts, plan }: Ledger): Readonly<Record<string, string>> {
  return { task, facts, plan };
}
