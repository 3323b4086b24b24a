import { type Component, type ComponentModel, componentModelSchema, defineComponent } from "@fenced/core";
import { checkOptions, objectOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { ChatAgent } from "../agents/chat-agent.ts";
import { TaskRunnerTool } from "./task-runner-tool.ts";

/** How an agent is offered as a tool. */
export interface AgentToolOptions {
  /** Return only the agent's last message to the model. Default: false; all messages, each with its source. */
  readonly returnValueAsLastMessage?: boolean | undefined;
}

const toolOptions = z.object({ agent: objectOption<ChatAgent>(["runStream", "onMessagesStream"], "an agent") });
const otherOptions: z.ZodType<AgentToolOptions> = optionsSchema({
  returnValueAsLastMessage: z.boolean().exactOptional(),
} satisfies OptionSchemas<AgentToolOptions>);

/**
 * Offers an agent to another agent as a tool, with its own name and description. Its messages and events appear in the
 * other agent's stream. Calls run one at a time, and the agent remembers earlier ones.
 *
 * @example
 * const historian = new AssistantAgent({ name: "historian", modelClient, description: "Knows when things happened." });
 * const writer = new AssistantAgent({ name: "writer", modelClient, tools: [new AgentTool(historian)], maxToolIterations: 3 });
 */
export class AgentTool extends TaskRunnerTool {
  /** Creates the tool that `dumpComponent` described. It owns its agent and disposes of it when it is disposed of. */
  static readonly component: Component<AgentTool> = defineComponent({
    provider: "@fenced/agentchat:AgentTool",
    componentType: "tool",
    schema: z.strictObject({ agent: componentModelSchema, returnValueAsLastMessage: z.boolean().optional() }),
    load: async ({ agent, ...options }, context) => {
      const tool = new AgentTool(await context.load<ChatAgent>(agent, "agent"), options);
      tool.ownRunner();
      return tool;
    },
  });

  readonly #agent: ChatAgent;
  readonly #options: AgentToolOptions;

  /**
   * @param agent - you own it; this class does not dispose of it.
   * @throws InvalidInputError if it is not an agent, or an option is unknown or wrong.
   */
  constructor(agent: ChatAgent, options: AgentToolOptions = {}) {
    const { name, description } = checkOptions(toolOptions, { agent }, "AgentTool").agent;
    const checked = checkOptions(otherOptions, options, "AgentTool");
    super(agent, { name, description, returnValueAsLastMessage: checked.returnValueAsLastMessage ?? false });
    this.#agent = agent;
    this.#options = checked;
  }

  override dumpComponent(): ComponentModel {
    return AgentTool.component.dump({ ...this.#options, agent: this.#agent.dumpComponent() });
  }
}
