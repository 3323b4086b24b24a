import { InvalidInputError } from "@fenced/core";
import { isTaskResult, type TaskResult, type WaitingFor } from "../agents/chat-agent.ts";
import { takeTurn } from "../agents/take-turn.ts";
import { WaitingForPersonError } from "../agents/waiting-for-person-error.ts";
import { leavableStream } from "../common/leavable-stream.ts";
import { mergeStreams } from "../common/merge-streams.ts";
import type { PauseGate } from "../common/pause-gate.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { isChatMessage, isPiece } from "../messages/message-guards.ts";
import type { ChatLog } from "./chat-log.ts";
import { isTeam, type Participant, type Team } from "./team.ts";

/** Options of `takeTurns`. */
export interface TakeTurnsOptions {
  readonly log: ChatLog;
  readonly gate: PauseGate;
  /** Called with a participant's messages and events. `speaker` is absent while its turn is waiting for a person. */
  readonly heard: (news: readonly AgentMessage[], speaker?: string) => unknown;
  readonly signal: AbortSignal;
}

/** The outcome of one turn, or of several in parallel. */
export interface TurnOutcome {
  /** Messages and events for the condition. */
  readonly news: AgentMessage[];
  /** Also includes those of participants that are waiting for a person. */
  readonly shown: AgentMessage[];
  readonly waitingFor: WaitingFor[];
}

interface Turn extends TakeTurnsOptions {
  readonly outcome: TurnOutcome;
  readonly waiting: string[];
}

/** Runs the turns of one or more participants in parallel. Only a turn that reaches its answer changes the log. */
export async function* takeTurns(
  speakers: readonly Participant[],
  options: TakeTurnsOptions,
): AsyncGenerator<AgentMessage, TurnOutcome, void> {
  const outcome: TurnOutcome = { news: [], shown: [], waitingFor: [] };
  const waiting: string[] = [];
  const turns = speakers.map((speaker) =>
    leavableStream((signal) => speak(speaker, { ...options, signal, outcome, waiting }), options.signal),
  );
  for await (const message of mergeStreams(turns)) {
    if (!isPiece(message)) outcome.shown.push(message);
    yield message;
    await options.gate.pass(options.signal);
  }
  options.log.waiting = waiting;
  return outcome;
}

async function* speak(speaker: Participant, turn: Turn): AsyncGenerator<AgentMessage, void, void> {
  const { log, heard, signal, outcome, waiting } = turn;
  const { name } = speaker;
  const unread = log.unreadOf(name);
  const keep = (news: readonly AgentMessage[], told: readonly ChatMessage[]): void => {
    log.heard(name, unread.length);
    log.add(news, told, name);
    outcome.news.push(...news);
  };
  const onResult = async ({ messages, waitingFor = [] }: TaskResult): Promise<void> => {
    keep(messages, messages.filter(isChatMessage));
    outcome.waitingFor.push(...waitingFor);
    const isOver = waitingFor.length === 0;
    if (!isOver) waiting.push(name);
    await heard(messages, isOver ? name : undefined);
  };
  const onAnswer = async (news: readonly AgentMessage[], answer: ChatMessage): Promise<void> => {
    keep(news, [answer]);
    await heard(news, name);
  };
  try {
    if (isTeam(speaker)) yield* teamTurn(speaker, unread, { signal, onResult });
    else yield* takeTurn(speaker, unread, { signal, onAnswer });
  } catch (error) {
    if (!WaitingForPersonError.isInstance(error)) throw error;
    outcome.waitingFor.push(error.waitingFor);
    waiting.push(name);
  }
}

/** Runs a nested team on the messages that it has not heard yet. A turn that fails is undone. */
async function* teamTurn(
  team: Team,
  unread: readonly ChatMessage[],
  { signal, onResult }: { readonly signal: AbortSignal; readonly onResult: (result: TaskResult) => Promise<void> },
): AsyncGenerator<AgentMessage, void, void> {
  const before = await team.saveState();
  const task = unread.length === 0 ? {} : { task: unread };
  let result: TaskResult | undefined;
  try {
    for await (const item of team.runStream({ ...task, signal, outputTaskMessages: false })) {
      if (isTaskResult(item)) result = item;
      else yield item;
    }
  } finally {
    if (result === undefined) await team.loadState(before);
  }
  if (result === undefined) {
    throw new InvalidInputError(`The run of team "${team.name}" ended without a TaskResult`, {
      remedy: "Make its runStream() yield a TaskResult as its last item.",
    });
  }
  await onResult(result);
}
