import {
  type ChatCompletionClient,
  type CodeExecutor,
  type ComponentContext,
  type ComponentModel,
  componentModelSchema,
  type JsonObject,
  parseComponentConfig,
} from "@fenced/core";
import * as z from "zod";
import { dumpComponentModel } from "../common/dump-component-model.ts";
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
  sources: z.array(z.string()).optional(),
  supportedLanguages: z.array(z.string()).optional(),
  modelContext: componentModelSchema.optional(),
});

/** A `CodeExecutorAgent`'s settings as a component. */
export function dumpCodeExecutorAgent(options: CodeExecutorAgentOptions): ComponentModel {
  const settings = {
    ...options,
    codeExecutor: options.codeExecutor.dumpComponent(),
    modelClient: options.modelClient?.dumpComponent(),
    modelContext: options.modelContext?.dumpComponent(),
  };
  return dumpComponentModel({ className: "CodeExecutorAgent", componentType: "agent", settings });
}

/** The options of the `CodeExecutorAgent` that a config describes. */
export async function loadCodeExecutorAgentOptions(
  config: JsonObject,
  context: ComponentContext,
): Promise<CodeExecutorAgentOptions> {
  const parsed = parseComponentConfig(configSchema, config, context.provider);
  const { codeExecutor, modelClient, modelContext, ...rest } = parsed;
  return {
    ...rest,
    codeExecutor: await context.load<CodeExecutor>(codeExecutor, "codeExecutor"),
    ...(modelClient && { modelClient: await context.load<ChatCompletionClient>(modelClient, "modelClient") }),
    ...(modelContext && { modelContext: await context.load<ChatCompletionContext>(modelContext, "modelContext") }),
  };
}
