import type { ComponentModel, JsonObject } from "@fenced/core";
import type { ChatAgent, RunOptions, TaskResult } from "../agents/chat-agent.ts";
import type { AgentMessage } from "../messages/agent-event.ts";

/** Who takes part in a team: agents, and teams that work on what they hear until they stop by themselves. */
export type Participant = ChatAgent | Team;

/** Agents that work on a task together. */
export interface Team extends AsyncDisposable {
  readonly name: string;
  readonly description: string;

  /**
   * Works on a task until the team stops by itself. Without a task it goes on where it stopped.
   *
   * @throws `options.signal.reason` after an abort, once nothing of the run is left running. The team may go on later.
   * @throws the very error that an agent threw.
   * @throws InvalidInputError if the team is running already.
   */
  run(options?: RunOptions): Promise<TaskResult>;

  /** The same as it happens: messages, events and streaming chunks, and last the `TaskResult`. Leaving is an abort. */
  runStream(options?: RunOptions): AsyncIterable<AgentMessage | TaskResult>;

  /**
   * Holds a run up: no turn begins, and nothing more is read from agents that speak, so a program that prints waits. What a
   * model or a program is computing goes on. To end a run and save it instead, use a condition, or abort it.
   */
  pause(): Promise<void>;

  /** Lets a run that was paused go on. */
  resume(): Promise<void>;

  /** Starts over: resets the agents, the conditions and the order of speakers. Not while running. */
  reset(): Promise<void>;

  /** What was said and who comes next, with the memories of all agents, as plain JSON. Not while running. */
  saveState(): Promise<JsonObject>;

  /**
   * Takes over a state that `saveState` gave. Not while running.
   *
   * @throws InvalidInputError if `state` is not a saved state, or belongs to other agents.
   */
  loadState(state: JsonObject): Promise<void>;

  /** @throws ComponentError if a setting of the team or of one of its parts cannot be dumped. */
  dumpComponent(): ComponentModel;
}

/** Tells a team from an agent. */
export function isTeam(participant: Participant): participant is Team {
  return !("onMessagesStream" in participant);
}
