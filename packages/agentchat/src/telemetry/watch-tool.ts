import type { ToolCall } from "@fenced/core";
import { captured, watch } from "@fenced/core/telemetry";
import type { Tool } from "../tools/tool.ts";
import { conventions, toolDuration } from "./conventions.ts";

/** Watches the execution of a tool. An error that the tool throws goes to the model and marks the span as failed. */
export function watchTool(
  { call, tool, agentName }: { readonly call: ToolCall; readonly tool: Tool; readonly agentName: string | undefined },
  execute: () => Promise<string>,
): Promise<string> {
  const { name, description } = tool;
  return watch(
    {
      ...conventions,
      name: `execute_tool ${name}`,
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": description,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.agent.name": agentName,
      },
      duration: toolDuration,
      metricAttributes: { "gen_ai.tool.name": name, "gen_ai.agent.name": agentName },
    },
    async (operation) => {
      operation.setContent(() => ({ "gen_ai.tool.call.arguments": captured(call.arguments) }));
      const result = await execute();
      operation.setContent(() => ({ "gen_ai.tool.call.result": captured(result) }));
      return result;
    },
  );
}
