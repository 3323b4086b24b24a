import { InvalidInputError } from "@fenced/core";
import { objectOption, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { TerminationCondition } from "../conditions/termination-condition.ts";
import type { Participant } from "./team.ts";

/** Options of every team. */
export interface GroupChatOptions {
  /** Agents and teams, with different names. You own them. */
  readonly participants: readonly Participant[];
  /** When the chat ends. Reset when a run starts. Default: never. */
  readonly terminationCondition?: TerminationCondition | undefined;
  /** Maximum turns per run; agents that speak at the same time share one turn. Default: no limit. */
  readonly maxTurns?: number | undefined;
  /**
   * Yield a `SelectSpeakerEvent` for each chosen speaker and, before it, a `SelectorEvent` for each answer of a model.
   * Default: false.
   */
  readonly emitTeamEvents?: boolean | undefined;
  /** The name of the team. Default: the name of the class. */
  readonly name?: string | undefined;
  /** What the team does, for selectors and tools. Default: a general text. */
  readonly description?: string | undefined;
}

/** The schemas of these options, for `optionsSchema`. */
export const groupChatOptions: OptionSchemas<GroupChatOptions> = {
  participants: z.array(objectOption<Participant>(["runStream", "saveState"], "an agent or a team")).min(1),
  terminationCondition: objectOption<TerminationCondition>(
    ["check", "reset"],
    "a termination condition",
  ).exactOptional(),
  maxTurns: wholeNumberOption({ from: 1 }).exactOptional(),
  emitTeamEvents: z.boolean().exactOptional(),
  name: z.string().min(1).exactOptional(),
  description: z.string().exactOptional(),
};

/** @throws InvalidInputError if two participants share a name. */
export function assertOwnNames(participants: readonly Participant[]): void {
  const names = participants.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  throw new InvalidInputError(`Two participants are named "${twice}"`, {
    remedy: "Give each agent and each nested team a unique name.",
  });
}
