import { setImmediate } from "node:timers/promises";
import { type ComponentModel, InvalidInputError, type JsonObject } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import { isTaskResult, runOptions, type RunOptions, type TaskResult } from "../agents/chat-agent.ts";
import { taskMessages } from "../agents/task-messages.ts";
import { waitingResult } from "../agents/waiting-for-person-error.ts";
import { disposeAll } from "../common/dispose-all.ts";
import { lastItem } from "../common/last-item.ts";
import { PauseGate } from "../common/pause-gate.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { selectSpeakerEvent } from "../messages/create-message.ts";
import { isPiece } from "../messages/message-guards.ts";
import { watchTeam } from "../telemetry/watch-team.ts";
import { ChatLog } from "./chat-log.ts";
import { assertOwnNames, type GroupChatOptions } from "./group-chat-options.ts";
import { takeTurns } from "./take-turns.ts";
import { isTeam, type Participant, type Team } from "./team.ts";

type Items<Result> = AsyncGenerator<AgentMessage | TaskResult, Result, void>;

/** The names of the next speakers. Several speak at the same time; none ends the chat. */
export type Speakers = readonly string[];

/** The next turn of a team that speaks itself, besides its participants. */
export interface NextTurn {
  readonly speakers: Speakers;
  /** What the team says to all participants before the turn, with its name as the source. Default: nothing. */
  readonly say?: readonly ChatMessage[] | undefined;
  /** Reset all participants before that; they do not hear anything older. Default: false. */
  readonly startOver?: boolean | undefined;
  /** Changes the team's own state. Called after the participants are reset, together with `say`; must not fail. Default: nothing. */
  readonly apply?: (() => void) | undefined;
}

/**
 * The base class of teams. A subclass chooses the next speakers; this class runs their turns, passes messages on, checks
 * the termination condition, and handles saving, pausing and stopping.
 *
 * @example
 * class PingPong extends BaseGroupChat {
 *   protected override selectSpeakers(history: readonly AgentMessage[]): Speakers {
 *     return history.at(-1)?.source === "writer" ? ["critic"] : ["writer"];
 *   }
 *   override dumpComponent(): ComponentModel {
 *     throw new ComponentError("PingPong cannot be dumped", { remedy: "Create it in code." });
 *   }
 * }
 */
export abstract class BaseGroupChat implements Team {
  readonly name: string;
  readonly description: string;
  readonly #options: GroupChatOptions;
  readonly #participants: ReadonlyMap<string, Participant>;
  readonly #log: ChatLog;
  readonly #gate: PauseGate = new PauseGate();
  #ownsParticipants = false;
  #running = false;

  /**
   * @param options - already checked.
   * @throws InvalidInputError if two participants have the same name.
   */
  constructor(options: GroupChatOptions) {
    assertOwnNames(options.participants);
    this.name = options.name ?? new.target.name;
    this.description = options.description ?? "A team of agents.";
    this.#options = options;
    this.#participants = new Map(options.participants.map((participant) => [participant.name, participant]));
    this.#log = new ChatLog(this.participantNames);
  }

  /** The names of the participants, in their original order. */
  get participantNames(): readonly string[] {
    return [...this.#participants.keys()];
  }

  async run(options: RunOptions = {}): Promise<TaskResult> {
    return lastItem(this.runStream(options), isTaskResult);
  }

  runStream(options: RunOptions = {}): Items<void> {
    const { signal, ...checked } = checkOptions(runOptions, options, "runStream");
    const team = { name: this.name, participants: this.#participants.size };
    return watchTeam(team, (ended) => this.#run(checked, ended), signal);
  }

  async pause(): Promise<void> {
    this.#gate.close();
    await this.#each(async (one) => (isTeam(one) ? one.pause() : one.onPause?.()));
  }

  async resume(): Promise<void> {
    await this.#each(async (one) => (isTeam(one) ? one.resume() : one.onResume?.()));
    this.#gate.open();
  }

  async reset(): Promise<void> {
    this.#assertIdle("be reset");
    this.#log.reset();
    await this.resetManager();
    await this.#options.terminationCondition?.reset();
    for (const participant of this.#options.participants) await participant.reset();
  }

  async saveState(): Promise<JsonObject> {
    this.#assertIdle("save its state");
    return this.#log.save(await this.#saveParticipants(), await this.saveManager());
  }

  async loadState(state: JsonObject): Promise<void> {
    this.#assertIdle("load a state");
    const { participants, manager, apply } = this.#log.read(state, `team "${this.name}"`);
    const before = await this.#saveParticipants();
    try {
      await this.#loadParticipants(participants);
      await this.loadManager(manager);
    } catch (error) {
      await this.#loadParticipants(before);
      throw error;
    }
    apply();
  }

  /** @throws ComponentError if a part of the team cannot be dumped. */
  abstract dumpComponent(): ComponentModel;

  /** Disposes of the participants that `loadComponent` created. Those that you passed in remain yours. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ownsParticipants) await disposeAll(this.#options.participants);
  }

  /**
   * Returns who speaks next. It must not change the team, but may return `apply`, which does: if it fails, or the turn does, the next
   * run calls it again. A generator may yield events first.
   *
   * @param history - all messages and events so far.
   * @param options - the signal of the run.
   */
  protected abstract selectSpeakers(
    history: readonly AgentMessage[],
    options: { readonly signal: AbortSignal },
  ): Speakers | NextTurn | Promise<Speakers | NextTurn> | AsyncGenerator<AgentMessage, Speakers | NextTurn, void>;

  /**
   * Called with the messages of a task, and with the messages and events of a turn.
   *
   * @param _speaker - whose turn has ended. Absent for a task, and for messages of a team that is waiting for a person:
   * its turn continues in the next run.
   */
  protected heard(_messages: readonly AgentMessage[], _speaker?: string): void | Promise<void> {}

  /** Called before a run begins, with the task's messages. An error ends the run before anything has changed. */
  protected checkStart(_task: readonly ChatMessage[]): void {}

  /** The stop reason when no one speaks next. */
  protected get endReason(): string {
    return "Nobody speaks next.";
  }

  /** Clears the state of the subclass. */
  protected resetManager(): void | Promise<void> {}

  /** The state of the subclass, as JSON. */
  protected saveManager(): JsonObject | Promise<JsonObject> {
    return {};
  }

  /** Restores a state from `saveManager`, completely or not at all. */
  protected loadManager(_state: JsonObject): void | Promise<void> {}

  /** Disposes of the participants together with the team. */
  protected ownParticipants(): void {
    this.#ownsParticipants = true;
  }

  async *#run({ task, outputTaskMessages = true }: RunOptions, signal: AbortSignal): Items<void> {
    signal.throwIfAborted();
    const input = taskMessages(task);
    this.#assertIdle("run again");
    this.checkStart(input);
    this.#running = true;
    let result: TaskResult;
    try {
      result = yield* this.#chat(input, outputTaskMessages, signal);
    } finally {
      this.#running = false;
    }
    // The run is over: the consumer may now save the team, reset it, or run it again.
    yield result;
  }

  async *#chat(input: readonly ChatMessage[], outputTask: boolean, signal: AbortSignal): Items<TaskResult> {
    const { maxTurns = Infinity, terminationCondition } = this.#options;
    await terminationCondition?.reset();
    const messages: AgentMessage[] = outputTask ? [...input] : [];
    this.#log.add(input, input);
    await this.heard(input);
    if (outputTask) yield* input;

    let stopReason = await this.#reasonToStop(input);
    for (let count = 1; stopReason === undefined; count++) {
      // Agents that never wait would otherwise keep timers, and aborts that timers trigger, from running.
      await setImmediate();
      await this.#gate.pass(signal);
      signal.throwIfAborted();
      const { speakers, said } = yield* this.#nextTurn(messages, signal);
      stopReason = await this.#reasonToStop(said);
      if (stopReason !== undefined) break;
      if (speakers.length === 0) return { messages, stopReason: this.endReason };
      const heard = (news: readonly AgentMessage[], speaker?: string): unknown => this.heard(news, speaker);
      const turn = { log: this.#log, gate: this.#gate, heard, signal };
      const { news, shown, waitingFor } = yield* takeTurns(speakers, turn);
      messages.push(...shown);
      if (waitingFor.length > 0) return { messages, ...waitingResult(waitingFor) };
      stopReason = await this.#reasonToStop(news);
      if (count >= maxTurns) stopReason ??= `The limit of ${maxTurns} turns is reached.`;
    }
    return { messages, stopReason };
  }

  async *#nextTurn(
    messages: AgentMessage[],
    signal: AbortSignal,
  ): AsyncGenerator<AgentMessage, { speakers: readonly Participant[]; said: readonly ChatMessage[] }, void> {
    const { emitTeamEvents = false } = this.#options;
    if (this.#log.waiting.length > 0) return { speakers: this.#named(this.#log.waiting), said: [] };
    const selecting = this.selectSpeakers(this.#log.messages, { signal });
    const events = Symbol.asyncIterator in selecting ? selecting : noEvents(selecting);
    let step = await events.next();
    for (; step.done !== true; step = await events.next()) {
      if (!emitTeamEvents) continue;
      if (!isPiece(step.value)) messages.push(step.value);
      yield step.value;
    }
    const next: NextTurn = "speakers" in step.value ? step.value : { speakers: step.value };
    const speakers = this.#named(next.speakers);
    const said = next.say ?? [];
    if (next.startOver === true) await this.#startOver();
    next.apply?.();
    this.#log.add(said, said);
    messages.push(...said);
    yield* said;
    if (emitTeamEvents && speakers.length > 0) {
      const event = selectSpeakerEvent({ source: this.name, content: next.speakers });
      messages.push(event);
      yield event;
    }
    return { speakers, said };
  }

  async #startOver(): Promise<void> {
    for (const participant of this.#options.participants) await participant.reset();
    this.#log.forgetUnread();
  }

  async #reasonToStop(news: readonly AgentMessage[]): Promise<string | undefined> {
    // A run without a task has nothing to check before its first turn.
    if (news.length === 0) return undefined;
    const stop = await this.#options.terminationCondition?.check(news);
    return stop?.content;
  }

  #named(names: Speakers): readonly Participant[] {
    return names.map((name) => {
      const participant = this.#participants.get(name);
      if (participant !== undefined) return participant;
      throw new InvalidInputError(`There is no participant "${name}" in team "${this.name}"`, {
        remedy: `The participants are ${this.participantNames.join(", ")}.`,
      });
    });
  }

  async #each(tell: (participant: Participant) => Promise<void>): Promise<void> {
    await Promise.all(this.#options.participants.map(tell));
  }

  async #saveParticipants(): Promise<Map<string, JsonObject>> {
    const states = new Map<string, JsonObject>();
    for (const participant of this.#options.participants) states.set(participant.name, await participant.saveState());
    return states;
  }

  async #loadParticipants(states: ReadonlyMap<string, JsonObject>): Promise<void> {
    for (const one of this.#options.participants) await one.loadState(states.get(one.name) ?? {});
  }

  #assertIdle(action: string): void {
    if (!this.#running) return;
    throw new InvalidInputError(`Team "${this.name}" is running and cannot ${action} now`, {
      remedy: "Wait for the run to end, abort it, or create a second team with its own agents.",
    });
  }
}

// oxlint-disable-next-line require-yield
async function* noEvents(
  next: Speakers | NextTurn | Promise<Speakers | NextTurn>,
): AsyncGenerator<AgentMessage, Speakers | NextTurn, void> {
  return next;
}
