import { InvalidInputError, type ModelInfo } from "@fenced/core";
import type { Tool } from "../tools/tool.ts";

/**
 * Checks what an agent offers its model.
 *
 * @throws InvalidInputError if a tool name is invalid or used twice, or the model cannot call tools.
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
    throw new InvalidInputError(`"${bad}" cannot be the name of a tool or handoff of agent "${agentName}"`, {
      remedy: "Give each one its own name of letters, digits, _ or -, at most 64 characters.",
    });
  }
}
