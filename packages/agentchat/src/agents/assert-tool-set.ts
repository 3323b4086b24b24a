import { InvalidInputError, type ModelInfo } from "@fenced/core";
import { type Tool, toToolSchema } from "../tools/tool.ts";

/**
 * Checks what an agent offers its model.
 *
 * @throws InvalidInputError if a tool name is invalid or used twice, a tool's parameters cannot be described, or the
 * model cannot call tools.
 */
export function assertToolSet(agentName: string, tools: readonly Tool[], modelInfo: ModelInfo): void {
  if (tools.length === 0) return;
  if (!modelInfo.functionCalling) {
    throw new InvalidInputError(`The model of agent "${agentName}" cannot call tools`, {
      remedy: "Leave out tools and handoffs, or use a model whose modelInfo.functionCalling is true.",
    });
  }
  const names = tools.map((tool) => tool.name);
  const bad = names.find((name, index) => !/^[\w-]{1,64}$/.test(name) || names.indexOf(name) !== index);
  if (bad !== undefined) {
    throw new InvalidInputError(`Agent "${agentName}" cannot have a tool or handoff named "${bad}"`, {
      remedy: "Give each a unique name of letters, digits, _ or -, at most 64 characters.",
    });
  }
  for (const tool of tools) toToolSchema(tool);
}
