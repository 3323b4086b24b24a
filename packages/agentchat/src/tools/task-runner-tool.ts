import type { ComponentModel, JsonObject } from "@fenced/core";
import * as z from "zod";
import { isTaskResult, type RunOptions, type TaskResult } from "../agents/chat-agent.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { isChatMessage } from "../messages/message-guards.ts";
import { messageToText } from "../messages/message-to-text.ts";
import type { Tool } from "./tool.ts";

/** An agent or a team that works on a task. */
export interface TaskRunner extends AsyncDisposable {
  readonly name: string;
  readonly description: string;
  runStream(options?: RunOptions): AsyncIterable<AgentMessage | TaskResult>;
  reset(): Promise<void>;
  saveState(): Promise<JsonObject>;
  loadState(state: JsonObject): Promise<void>;
  dumpComponent(): ComponentModel;
}

/** Options of `TaskRunnerTool`. */
export interface TaskRunnerToolOptions {
  readonly name: string;
  readonly description: string;
  readonly returnValueAsLastMessage: boolean;
}

const argumentsSchema = z.object({
  task: z.string().describe("What to do, with all the information needed to do it."),
});

/** Offers an agent or a team as a tool. Calls run one at a time, and it remembers earlier ones. */
export abstract class TaskRunnerTool implements Tool, AsyncDisposable {
  readonly name: string;
  readonly description: string;
  readonly parameters: z.ZodType = argumentsSchema;
  readonly #runner: TaskRunner;
  readonly #onlyLast: boolean;
  #ownsRunner = false;
  #lastCall: Promise<unknown> = Promise.resolve();

  constructor(runner: TaskRunner, { name, description, returnValueAsLastMessage }: TaskRunnerToolOptions) {
    this.name = name;
    this.description = description;
    this.#runner = runner;
    this.#onlyLast = returnValueAsLastMessage;
  }

  /** Runs the task and returns the messages as text. */
  async execute(args: JsonObject, options: SignalOptions = {}): Promise<string> {
    const items = this.executeStream(args, options);
    let step = await items.next();
    while (step.done !== true) step = await items.next();
    return step.value;
  }

  /** Does the same as a stream. */
  async *executeStream(args: JsonObject, { signal }: SignalOptions = {}): AsyncGenerator<AgentMessage, string, void> {
    const { task } = argumentsSchema.parse(args);
    const before = this.#lastCall;
    let endCall = (): void => {};
    this.#lastCall = new Promise<void>((resolve) => {
      endCall = resolve;
    });
    try {
      await before;
      let result: TaskResult | undefined;
      for await (const item of this.#runner.runStream({ task, signal })) {
        if (isTaskResult(item)) result = item;
        else yield item;
      }
      return this.#textOf(result?.messages ?? [], result);
    } finally {
      endCall();
    }
  }

  /** The state of the agent or team. */
  async saveState(): Promise<JsonObject> {
    return this.#runner.saveState();
  }

  /** Restores a state from `saveState`. */
  async loadState(state: JsonObject): Promise<void> {
    await this.#runner.loadState(state);
  }

  /** Resets the agent or team. */
  async reset(): Promise<void> {
    await this.#runner.reset();
  }

  /** @throws ComponentError if the agent or team cannot be dumped. */
  abstract dumpComponent(): ComponentModel;

  /** Disposes of the agent or team if `loadComponent` created it for this tool. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ownsRunner) await this.#runner[Symbol.asyncDispose]();
  }

  /** Disposes of the agent or team together with the tool. */
  protected ownRunner(): void {
    this.#ownsRunner = true;
  }

  #textOf(messages: readonly AgentMessage[], result: TaskResult | undefined): string {
    if (result?.waitingFor !== undefined) throw new Error(`${result.stopReason} The task is not done.`);
    // The first one is the task.
    const said = messages.slice(1).filter(isChatMessage);
    if (!this.#onlyLast) return said.map((message) => `${message.source}: ${messageToText(message)}`).join("\n\n");
    const last = said.at(-1);
    return last === undefined ? "" : messageToText(last);
  }
}
