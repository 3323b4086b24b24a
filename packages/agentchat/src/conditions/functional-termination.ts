import { ComponentError, type ComponentModel } from "@fenced/core";
import { callbackOption, checkOptions } from "@fenced/core/options";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition } from "./termination-condition.ts";

/** Decides from the messages and events since the last check whether the chat ends. */
export type TerminationFunc = (messages: readonly AgentMessage[]) => boolean | Promise<boolean>;

const argumentsSchema = z.strictObject({ func: callbackOption<TerminationFunc>() });

/**
 * Ends the chat when a function returns true.
 *
 * @example
 * new FunctionalTermination((messages) => messages.at(-1)?.metadata["exitCode"] === "0");
 */
export class FunctionalTermination extends BaseTerminationCondition {
  readonly #func: TerminationFunc;

  /**
   * @param func - called once per turn.
   * @throws InvalidInputError if it is not a function.
   */
  constructor(func: TerminationFunc) {
    super();
    this.#func = checkOptions(argumentsSchema, { func }, "FunctionalTermination").func;
  }

  /** @throws ComponentError always: functions cannot be saved. */
  override dumpComponent(): ComponentModel {
    throw new ComponentError("FunctionalTermination cannot be dumped: its function cannot be saved", {
      remedy: "Write a condition class with a dumpComponent() and a static `component` created with defineComponent().",
    });
  }

  protected override async findReason(messages: readonly AgentMessage[]): Promise<string | undefined> {
    return (await this.#func(messages)) ? "The program's own condition is met." : undefined;
  }
}
