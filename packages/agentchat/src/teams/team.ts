import type { ComponentModel, JsonObject } from "@fenced/core";
import type { ChatAgent, RunOptions, TaskResult } from "../agents/chat-agent.ts";
import type { AgentMessage } from "../messages/agent-event.ts";

/** A member of a team: an agent, or a team that works on what it receives until it stops. */
export type Participant = ChatAgent | Team;

/** Agents that work on a task together. */
export interface Team extends AsyncDisposable {
  /** Unique among the members of an outer team. */
  readonly name: string;
  /** What the team does. Shown to models and people who choose between participants. */
  readonly description: string;

  /**
   * Works on a task until the team stops. Without a task, it continues where it stopped.
   *
   * @throws `options.signal.reason` after an abort, once nothing of the run is still running. The team can continue
   * later.
   * @throws the error that an agent threw, unchanged.
   * @throws InvalidInputError if the team is already running.
   */
  run(options?: RunOptions): Promise<TaskResult>;

  /** The same as a stream: messages, events and chunks, then the `TaskResult`. Leaving the stream aborts the run. */
  runStream(options?: RunOptions): AsyncIterable<AgentMessage | TaskResult>;

  /**
   * Pauses a run: no new turn begins, and the streams of speaking agents are not read, so a program that prints has to
   * wait. Models and programs continue to compute. To end and save a run instead, use a condition, or abort it.
   */
  pause(): Promise<void>;

  /** Resumes a paused run. */
  resume(): Promise<void>;

  /** Starts over: resets the agents, the conditions and the order of speakers. Not while running. */
  reset(): Promise<void>;

  /** Returns the conversation, the next speaker and the memories of all agents, as plain JSON. Not while running. */
  saveState(): Promise<JsonObject>;

  /**
   * Restores a state from `saveState`. Not while running.
   *
   * @throws InvalidInputError if `state` is not a saved state, or belongs to other agents.
   */
  loadState(state: JsonObject): Promise<void>;

  /** @throws ComponentError if a setting of the team or of one of its parts cannot be dumped. */
  dumpComponent(): ComponentModel;
}

/** Whether a participant is a team, not an agent. */
export function isTeam(participant: Participant): participant is Team {
  return !("onMessagesStream" in participant);
}
