import { type ComponentContext, type ComponentModel, componentModelSchema } from "@fenced/core";
import * as z from "zod";
import type { TerminationCondition } from "../conditions/termination-condition.ts";
import type { GroupChatOptions } from "./group-chat-options.ts";
import type { Participant } from "./team.ts";

/** The fields of every team's config. */
export const groupChatConfig: {
  readonly participants: z.ZodArray<z.ZodType<ComponentModel>>;
  readonly terminationCondition: z.ZodOptional<z.ZodType<ComponentModel>>;
  readonly maxTurns: z.ZodOptional<z.ZodNumber>;
  readonly emitTeamEvents: z.ZodOptional<z.ZodBoolean>;
  readonly name: z.ZodOptional<z.ZodString>;
  readonly description: z.ZodOptional<z.ZodString>;
} = {
  participants: z.array(componentModelSchema),
  terminationCondition: componentModelSchema.optional(),
  maxTurns: z.number().optional(),
  emitTeamEvents: z.boolean().optional(),
  name: z.string().optional(),
  description: z.string().optional(),
};

interface GroupChatConfig extends Omit<GroupChatOptions, "participants" | "terminationCondition"> {
  readonly participants: readonly ComponentModel[];
  readonly terminationCondition?: ComponentModel | undefined;
}

interface LoadedParts<Member extends Participant> {
  readonly participants: readonly Member[];
  readonly terminationCondition?: TerminationCondition;
}

/** A team's settings, with the components that all teams share dumped. */
export function dumpGroupChat(options: GroupChatOptions): Readonly<Record<string, unknown>> {
  return {
    ...options,
    participants: options.participants.map((participant) => participant.dumpComponent()),
    terminationCondition: options.terminationCondition?.dumpComponent(),
  };
}

/** A team's options, with the components that all teams share loaded. */
export async function loadGroupChat<Config extends GroupChatConfig, Member extends Participant = Participant>(
  config: Config,
  context: ComponentContext,
): Promise<Omit<Config, "participants" | "terminationCondition"> & LoadedParts<Member>> {
  const { participants, terminationCondition, ...rest } = config;
  return {
    ...rest,
    participants: await Promise.all(
      participants.map((each, index) => context.load<Member>(each, `participants[${index}]`)),
    ),
    ...(terminationCondition && {
      terminationCondition: await context.load<TerminationCondition>(terminationCondition, "terminationCondition"),
    }),
  };
}
