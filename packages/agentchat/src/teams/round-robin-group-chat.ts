import { type ComponentContext, type ComponentModel, InvalidInputError, type JsonObject } from "@fenced/core";
import * as z from "zod";
import { type ChatAgent, isTaskResult, type RunOptions, type Task, type TaskResult } from "../agents/chat-agent.ts";
import { takeTurn } from "../agents/take-turn.ts";
import { taskMessages } from "../agents/task-messages.ts";
import { checkCount } from "../common/check-count.ts";
import { disposeAll } from "../common/dispose-all.ts";
import { lastItem } from "../common/last-item.ts";
import { parseState } from "../common/parse-state.ts";
import { toJson } from "../common/to-json.ts";
import type { TerminationCondition } from "../conditions/termination-condition.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { agentMessageSchema, chatMessageSchema } from "../messages/agent-message-schema.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { jsonObjectSchema } from "../models/model-message-schema.ts";
import { watchTeam } from "../telemetry/watch-team.ts";
import { dumpRoundRobinGroupChat, loadRoundRobinGroupChatOptions } from "./round-robin-group-chat-config.ts";
import type { RoundRobinGroupChatOptions } from "./round-robin-group-chat-options.ts";
import type { Team } from "./team.ts";

type Items<Result> = AsyncGenerator<AgentMessage | TaskResult, Result, void>;

const stateSchema = z.strictObject({
  nextSpeaker: z.int().min(0),
  messages: z.array(agentMessageSchema),
  unread: z.record(z.string(), z.array(chatMessageSchema)),
  agents: z.record(z.string(), jsonObjectSchema),
});

/**
 * Agents that speak one after another, in the order in which they are listed, and all hear what each one says.
 *
 * Without a condition and without `maxTurns` the chat goes on until it is aborted.
 *
 * @example
 * const team = new RoundRobinGroupChat({
 *   participants: [coder, runner],
 *   terminationCondition: new MaxMessageTermination(10).or(new TextMentionTermination("TERMINATE")),
 * });
 * const { messages, stopReason } = await team.run({ task: "Plot the temperatures of July." });
 */
export class RoundRobinGroupChat implements Team {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "team";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly name: string;
  readonly description: string;
  readonly #participants: readonly ChatAgent[];
  readonly #terminationCondition: TerminationCondition | undefined;
  readonly #maxTurns: number;
  #ownsParticipants = false;
  #running = false;
  #nextSpeaker = 0;
  #messages: AgentMessage[] = [];
  #unread: Map<string, ChatMessage[]> = new Map();

  /** @throws InvalidInputError if there are no participants, two of one name, or `maxTurns` is not a whole number. */
  constructor(options: RoundRobinGroupChatOptions) {
    this.name = options.name ?? "RoundRobinGroupChat";
    this.description = options.description ?? "A team of agents that speak one after another.";
    this.#participants = checkedParticipants(options.participants);
    this.#terminationCondition = options.terminationCondition;
    this.#maxTurns = options.maxTurns === undefined ? Infinity : checkCount("maxTurns", options.maxTurns, 1);
  }

  /** Makes the team that `dumpComponent` described. It owns its agents, and ends them when it is disposed of. */
  static async fromConfig(config: JsonObject, context: ComponentContext): Promise<RoundRobinGroupChat> {
    const team = new RoundRobinGroupChat(await loadRoundRobinGroupChatOptions(config, context));
    team.#ownsParticipants = true;
    return team;
  }

  async run(options: RunOptions = {}): Promise<TaskResult> {
    return lastItem(this.runStream(options), isTaskResult);
  }

  runStream({ task, signal }: RunOptions = {}): Items<void> {
    const team = { name: this.name, participants: this.#participants.length };
    return watchTeam(team, (ended) => this.#run(task, ended), signal);
  }

  async reset(): Promise<void> {
    this.#assertIdle("be reset");
    this.#nextSpeaker = 0;
    this.#messages = [];
    this.#unread = new Map();
    await this.#terminationCondition?.reset();
    for (const participant of this.#participants) await participant.reset();
  }

  async saveState(): Promise<JsonObject> {
    this.#assertIdle("save its state");
    return {
      nextSpeaker: this.#nextSpeaker,
      messages: toJson(this.#messages),
      unread: toJson(Object.fromEntries(this.#unread)),
      agents: await this.#saveAgents(),
    };
  }

  async loadState(state: JsonObject): Promise<void> {
    this.#assertIdle("load a state");
    const { nextSpeaker, messages, unread, agents } = parseState(stateSchema, state, `team "${this.name}"`);
    const isMissing = this.#participants.some(({ name }) => agents[name] === undefined);
    if (isMissing || nextSpeaker >= this.#participants.length) {
      throw new InvalidInputError(`The state belongs to a team of ${Object.keys(agents).join(", ")}`, {
        remedy: "Load it into a team with the same participants in the same order.",
      });
    }
    const before = await this.#saveAgents();
    try {
      await this.#loadAgents(agents);
    } catch (error) {
      await this.#loadAgents(before);
      throw error;
    }
    this.#nextSpeaker = nextSpeaker;
    this.#messages = messages;
    this.#unread = new Map(Object.entries(unread));
  }

  /** @throws ComponentError if a part of the team cannot be dumped. */
  dumpComponent(): ComponentModel {
    return dumpRoundRobinGroupChat({
      name: this.name,
      description: this.description,
      participants: this.#participants,
      terminationCondition: this.#terminationCondition,
      maxTurns: this.#maxTurns === Infinity ? undefined : this.#maxTurns,
    });
  }

  /** Ends the agents that `loadComponent` made for the team. Agents that were passed in stay with who passed them. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ownsParticipants) await disposeAll(this.#participants);
  }

  async #saveAgents(): Promise<Record<string, JsonObject>> {
    const agents: Record<string, JsonObject> = {};
    for (const participant of this.#participants) agents[participant.name] = await participant.saveState();
    return agents;
  }

  async #loadAgents(agents: Readonly<Record<string, JsonObject>>): Promise<void> {
    for (const participant of this.#participants) await participant.loadState(agents[participant.name] ?? {});
  }

  async *#run(task: Task | undefined, signal: AbortSignal): Items<void> {
    signal.throwIfAborted();
    const input = taskMessages(task);
    this.#assertIdle("run again");
    this.#running = true;
    let result: TaskResult;
    try {
      result = yield* this.#chat(input, signal);
    } finally {
      this.#running = false;
    }
    // The run is over: whoever reads this may save the team, reset it, or go on with it.
    yield result;
  }

  async *#chat(input: readonly ChatMessage[], signal: AbortSignal): Items<TaskResult> {
    await this.#terminationCondition?.reset();
    const said: AgentMessage[] = [...input];
    this.#messages.push(...input);
    this.#tell(input);
    yield* input;

    let stopReason = await this.#reasonToStop(input);
    for (let turn = 1; stopReason === undefined; turn++) {
      signal.throwIfAborted();
      const news = yield* this.#nextTurn(signal);
      said.push(...news);
      stopReason = await this.#reasonToStop(news);
      if (turn >= this.#maxTurns) stopReason ??= `The limit of ${this.#maxTurns} turns is reached.`;
    }
    return { messages: said, stopReason };
  }

  /** Lets the next agent speak. Only a turn that comes to its answer changes the team. */
  async *#nextTurn(signal: AbortSignal): Items<readonly AgentMessage[]> {
    const speaker = this.#speaker();
    let said: readonly AgentMessage[] = [];
    const onAnswer = (news: readonly AgentMessage[], answer: ChatMessage): void => {
      said = news;
      this.#endTurn(speaker, news, answer);
    };
    yield* takeTurn(speaker, this.#unread.get(speaker.name) ?? [], { signal, onAnswer });
    return said;
  }

  #endTurn(speaker: ChatAgent, news: readonly AgentMessage[], answer: ChatMessage): void {
    this.#messages.push(...news);
    this.#unread.set(speaker.name, []);
    this.#tell([answer], speaker);
    this.#nextSpeaker = (this.#nextSpeaker + 1) % this.#participants.length;
  }

  /** Gives messages to all agents except the one that said them. */
  #tell(messages: readonly ChatMessage[], sender?: ChatAgent): void {
    for (const participant of this.#participants) {
      if (participant === sender) continue;
      this.#unread.set(participant.name, [...(this.#unread.get(participant.name) ?? []), ...messages]);
    }
  }

  async #reasonToStop(news: readonly AgentMessage[]): Promise<string | undefined> {
    // A run without a task has nothing to look at before its first turn.
    if (news.length === 0) return undefined;
    const stop = await this.#terminationCondition?.check(news);
    return stop?.content;
  }

  #speaker(): ChatAgent {
    const speaker = this.#participants[this.#nextSpeaker];
    if (speaker !== undefined) return speaker;
    throw new RangeError(`There is no participant ${this.#nextSpeaker}.`);
  }

  #assertIdle(action: string): void {
    if (!this.#running) return;
    throw new InvalidInputError(`Team "${this.name}" is running and cannot ${action} now`, {
      remedy: "Wait for the run to end, abort it, or make a second team with agents of its own.",
    });
  }
}

function checkedParticipants(participants: readonly ChatAgent[]): readonly ChatAgent[] {
  const names = participants.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new InvalidInputError(`Two participants are named "${twice}"`, { remedy: "Give each agent its own name." });
  }
  if (names.length === 0) {
    throw new InvalidInputError("The team has no participants", { remedy: "Give it at least one agent." });
  }
  return [...participants];
}
