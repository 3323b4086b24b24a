import {
  type ChatCompletionClient,
  type CodeExecutor,
  type Component,
  type ComponentContext,
  componentModelSchema,
  defineComponent,
} from "@fenced/core";
import * as z from "zod";
import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import type { CodeExecutorAgentOptions } from "./code-executor-agent-options.ts";

const configSchema = z.strictObject({
  name: z.string(),
  codeExecutor: componentModelSchema,
  modelClient: componentModelSchema.optional(),
  modelClientStream: z.boolean().optional(),
  maxRetriesOnError: z.number().optional(),
  systemMessage: z.string().optional(),
  description: z.string().optional(),
  maxOutputCharacters: z.number().optional(),
  sources: z.array(z.string()).optional(),
  supportedLanguages: z.array(z.string()).optional(),
  modelContext: componentModelSchema.optional(),
});

/** A `CodeExecutorAgent`'s settings, with the components in them dumped. */
export function dumpCodeExecutorAgent(options: CodeExecutorAgentOptions): Readonly<Record<string, unknown>> {
  return {
    ...options,
    codeExecutor: options.codeExecutor.dumpComponent(),
    modelClient: options.modelClient?.dumpComponent(),
    modelContext: options.modelContext?.dumpComponent(),
  };
}

/** How a `CodeExecutorAgent` is dumped and loaded. */
export function codeExecutorAgentComponent<T>(make: (options: CodeExecutorAgentOptions) => T): Component<T> {
  return defineComponent({
    provider: "@fenced/agentchat:CodeExecutorAgent",
    componentType: "agent",
    schema: configSchema,
    load: async (config, context) => make(await loadOptions(config, context)),
  });
}

async function loadOptions(
  config: z.output<typeof configSchema>,
  context: ComponentContext,
): Promise<CodeExecutorAgentOptions> {
  const { codeExecutor, modelClient, modelContext, ...rest } = config;
  return {
    ...rest,
    codeExecutor: await context.load<CodeExecutor>(codeExecutor, "codeExecutor"),
    ...(modelClient && { modelClient: await context.load<ChatCompletionClient>(modelClient, "modelClient") }),
    ...(modelContext && { modelContext: await context.load<ChatCompletionContext>(modelContext, "modelContext") }),
  };
}
