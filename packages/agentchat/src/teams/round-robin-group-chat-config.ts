import {
  type ComponentContext,
  type ComponentModel,
  componentModelSchema,
  type JsonObject,
  parseComponentConfig,
} from "@fenced/core";
import * as z from "zod";
import type { ChatAgent } from "../agents/chat-agent.ts";
import { dumpComponentModel } from "../common/dump-component-model.ts";
import type { TerminationCondition } from "../conditions/termination-condition.ts";
import type { RoundRobinGroupChatOptions } from "./round-robin-group-chat-options.ts";

const configSchema = z.strictObject({
  participants: z.array(componentModelSchema),
  terminationCondition: componentModelSchema.optional(),
  maxTurns: z.number().optional(),
  name: z.string().optional(),
  description: z.string().optional(),
});

/** A `RoundRobinGroupChat`'s settings as a component. */
export function dumpRoundRobinGroupChat(options: RoundRobinGroupChatOptions): ComponentModel {
  const settings = {
    ...options,
    participants: options.participants.map((participant) => participant.dumpComponent()),
    terminationCondition: options.terminationCondition?.dumpComponent(),
  };
  return dumpComponentModel({ className: "RoundRobinGroupChat", componentType: "team", settings });
}

/** The options of the `RoundRobinGroupChat` that a config describes. */
export async function loadRoundRobinGroupChatOptions(
  config: JsonObject,
  context: ComponentContext,
): Promise<RoundRobinGroupChatOptions> {
  const parsed = parseComponentConfig(configSchema, config, context.provider);
  const { participants, terminationCondition, ...rest } = parsed;
  return {
    ...rest,
    participants: await Promise.all(
      participants.map((each, index) => context.load<ChatAgent>(each, `participants[${index}]`)),
    ),
    ...(terminationCondition && {
      terminationCondition: await context.load<TerminationCondition>(terminationCondition, "terminationCondition"),
    }),
  };
}
