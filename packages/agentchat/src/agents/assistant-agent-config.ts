import {
  type ChatCompletionClient,
  type ComponentContext,
  ComponentError,
  type ComponentModel,
  componentModelSchema,
  type JsonObject,
  parseComponentConfig,
} from "@fenced/core";
import * as z from "zod";
import { dumpComponentModel } from "../common/dump-component-model.ts";
import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import { jsonObjectSchema } from "../models/model-message-schema.ts";
import { type Tool, toJsonSchema } from "../tools/tool.ts";
import type { AssistantAgentOptions } from "./assistant-agent-options.ts";

const configSchema = z.strictObject({
  name: z.string(),
  modelClient: componentModelSchema,
  systemMessage: z.string().optional(),
  description: z.string().optional(),
  tools: z.array(componentModelSchema).optional(),
  handoffs: z
    .array(
      z
        .strictObject({ target: z.string(), name: z.string(), description: z.string(), message: z.string() })
        .or(z.string()),
    )
    .optional(),
  modelClientStream: z.boolean().optional(),
  reflectOnToolUse: z.boolean().optional(),
  maxToolIterations: z.number().optional(),
  modelContext: componentModelSchema.optional(),
  outputSchema: jsonObjectSchema.optional(),
  toolCallSummaryFormat: z.string().optional(),
});

/** An `AssistantAgent`'s settings as a component. */
export function dumpAssistantAgent(options: AssistantAgentOptions): ComponentModel {
  const settings = {
    ...options,
    modelClient: options.modelClient.dumpComponent(),
    tools: options.tools?.map(dumpTool),
    modelContext: options.modelContext?.dumpComponent(),
    outputSchema: options.outputSchema === undefined ? undefined : toJsonSchema(options.outputSchema),
  };
  return dumpComponentModel({ className: "AssistantAgent", componentType: "agent", settings });
}

/** The options of the `AssistantAgent` that a config describes. */
export async function loadAssistantAgentOptions(
  config: JsonObject,
  context: ComponentContext,
): Promise<AssistantAgentOptions> {
  const { modelClient, tools, modelContext, ...rest } = parseComponentConfig(configSchema, config, context.provider);
  return {
    ...rest,
    modelClient: await context.load<ChatCompletionClient>(modelClient, "modelClient"),
    tools: await Promise.all((tools ?? []).map((each, index) => context.load<Tool>(each, `tools[${index}]`))),
    ...(modelContext && { modelContext: await context.load<ChatCompletionContext>(modelContext, "modelContext") }),
  };
}

function dumpTool(tool: Tool): ComponentModel {
  if (tool.dumpComponent !== undefined) return tool.dumpComponent();
  throw new ComponentError(`The tool "${tool.name}" cannot be dumped`, {
    remedy: "A function is not a setting: give the tool a dumpComponent(), or make the agent in code.",
  });
}
