import { InvalidInputError } from "@fenced/core";
import { isTaskResult, type TaskResult } from "../agents/chat-agent.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { Team } from "./team.ts";

/** Options of `teamTurn`. */
export interface TeamTurnOptions {
  readonly signal: AbortSignal;
  /** Called with the result of the team's run. */
  readonly onResult: (result: TaskResult) => Promise<void>;
}

/** Runs a nested team on the messages that it has not heard yet. A turn that fails is undone. */
export async function* teamTurn(
  team: Team,
  unread: readonly ChatMessage[],
  { signal, onResult }: TeamTurnOptions,
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
