import {
  type ChatCompletionClient,
  type Component,
  type ComponentContext,
  ComponentError,
  type ComponentModel,
  componentModelSchema,
  defineComponent,
} from "@fenced/core";
import * as z from "zod";
import { jsonObjectSchema } from "../common/json.ts";
import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import type { Memory } from "../memory/memory.ts";
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
  maxToolResultCharacters: z.number().optional(),
  memory: z.array(componentModelSchema).optional(),
  modelContext: componentModelSchema.optional(),
  outputSchema: jsonObjectSchema.optional(),
  toolCallSummaryFormat: z.string().optional(),
});

/** An `AssistantAgent`'s settings, with the components in them dumped. */
export function dumpAssistantAgent(options: AssistantAgentOptions): Readonly<Record<string, unknown>> {
  return {
    ...options,
    modelClient: options.modelClient.dumpComponent(),
    tools: options.tools?.map(dumpTool),
    memory: options.memory?.map(dumpMemory),
    modelContext: options.modelContext?.dumpComponent(),
    outputSchema: options.outputSchema === undefined ? undefined : toJsonSchema(options.outputSchema),
  };
}

/** How an `AssistantAgent` is dumped and loaded. */
export function assistantAgentComponent<T>(make: (options: AssistantAgentOptions) => T): Component<T> {
  return defineComponent({
    provider: "@fenced/agentchat:AssistantAgent",
    componentType: "agent",
    schema: configSchema,
    load: async (config, context) => make(await loadOptions(config, context)),
  });
}

async function loadOptions(
  config: z.output<typeof configSchema>,
  context: ComponentContext,
): Promise<AssistantAgentOptions> {
  const { modelClient, tools, memory, modelContext, ...rest } = config;
  return {
    ...rest,
    modelClient: await context.load<ChatCompletionClient>(modelClient, "modelClient"),
    tools: await Promise.all((tools ?? []).map((each, index) => context.load<Tool>(each, `tools[${index}]`))),
    ...(memory && {
      memory: await Promise.all(memory.map((each, index) => context.load<Memory>(each, `memory[${index}]`))),
    }),
    ...(modelContext && { modelContext: await context.load<ChatCompletionContext>(modelContext, "modelContext") }),
  };
}

function dumpTool(tool: Tool): ComponentModel {
  if (tool.dumpComponent !== undefined) return tool.dumpComponent();
  throw new ComponentError(`The tool "${tool.name}" cannot be dumped`, {
    remedy: "Functions cannot be saved. Give the tool a dumpComponent(), or create the agent in code.",
  });
}

function dumpMemory(memory: Memory): ComponentModel {
  if (memory.dumpComponent !== undefined) return memory.dumpComponent();
  throw new ComponentError(`The memory "${memory.name}" cannot be dumped`, {
    remedy: "Give it a dumpComponent(), or create the agent in code.",
  });
}
