import { InvalidInputError, type JsonObject, type ModelMessage, type ToolCall, type ToolResult } from "@fenced/core";
import type { HandoffMessage } from "../messages/chat-message.ts";
import { handoffMessage } from "../messages/create-message.ts";
import type { Tool } from "../tools/tool.ts";

/** A way for an agent to hand the conversation to another: its model sees it as a tool. */
export interface Handoff {
  /** The name of the agent that takes over. */
  readonly target: string;
  /** The tool's name. Default: `transfer_to_` and the target in lower case. */
  readonly name?: string;
  /** Tells the model when to use it. Default: names the target. */
  readonly description?: string;
  /** What the `HandoffMessage` says. Default: names the target. */
  readonly message?: string;
}

/** A handoff with all its defaults filled in. */
export type CompleteHandoff = Required<Handoff>;

/** Fills in the defaults of a handoff. */
export function completeHandoff(handoff: string | Handoff): CompleteHandoff {
  const given = typeof handoff === "string" ? { target: handoff } : handoff;
  if (given.target === "") {
    throw new InvalidInputError("A handoff has an empty target", { remedy: "Name the agent that takes over." });
  }
  return {
    name: `transfer_to_${given.target.toLowerCase()}`,
    description: `Hand the conversation to ${given.target}.`,
    message: `${given.target}, please go on from here.`,
    ...given,
  };
}

/** The tool that the model sees. */
export function handoffTool({ name, description, message }: CompleteHandoff): Tool {
  const parameters: JsonObject = { type: "object", properties: {}, additionalProperties: false };
  return { name, description, parameters, execute: () => message };
}

/**
 * The message of the first handoff among the calls, if there is one. It carries the results of the other calls, so that
 * the target's model knows them. If there are several handoffs, the first wins: one agent speaks at a time.
 */
export function findHandoff({
  source,
  handoffs,
  calls,
  results,
}: {
  readonly source: string;
  readonly handoffs: readonly CompleteHandoff[];
  readonly calls: readonly ToolCall[];
  readonly results: readonly ToolResult[];
}): HandoffMessage | undefined {
  const isHandoff = ({ name }: { readonly name: string }): boolean => handoffs.some((each) => each.name === name);
  const first = calls.find(isHandoff);
  const handoff = handoffs.find((each) => each.name === first?.name);
  if (handoff === undefined) return undefined;

  const otherCalls = calls.filter((call) => !isHandoff(call));
  const otherResults = results.filter((result) => !isHandoff(result));
  const common = { source, content: handoff.message, target: handoff.target };
  if (otherCalls.length === 0) return handoffMessage(common);
  const context: ModelMessage[] = [
    { role: "assistant", content: otherCalls, source },
    { role: "tool", content: otherResults },
  ];
  return handoffMessage({ ...common, context });
}
