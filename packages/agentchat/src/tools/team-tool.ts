import { type Component, type ComponentModel, componentModelSchema, defineComponent } from "@fenced/core";
import { checkOptions, objectOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { Team } from "../teams/team.ts";
import { TaskRunnerTool } from "./task-runner-tool.ts";

/** How a team is offered as a tool. */
export interface TeamToolOptions {
  /** Its name for the model: letters, digits, `_` and `-`, at most 64. Default: the team's name. */
  readonly name?: string | undefined;
  /** Describes the tool to the model. Default: the team's description. */
  readonly description?: string | undefined;
  /** Return only the last message to the model. Default: false; all messages, each with its source. */
  readonly returnValueAsLastMessage?: boolean | undefined;
}

const teamOption = z.object({ team: objectOption<Team>(["runStream", "saveState"], "a team") });
const toolOptions: z.ZodType<TeamToolOptions> = optionsSchema({
  name: z.string().min(1).exactOptional(),
  description: z.string().exactOptional(),
  returnValueAsLastMessage: z.boolean().exactOptional(),
} satisfies OptionSchemas<TeamToolOptions>);

/**
 * Offers a team to an agent as a tool. Messages and events of the team appear in the agent's stream. Calls run one at a
 * time, and the team remembers earlier ones.
 *
 * @example
 * const research = new TeamTool(team, { name: "research", description: "Finds out about a topic.", returnValueAsLastMessage: true });
 * const writer = new AssistantAgent({ name: "writer", modelClient, tools: [research], maxToolIterations: 3 });
 */
export class TeamTool extends TaskRunnerTool {
  /** Creates the tool that `dumpComponent` described. It owns its team and disposes of it when it is disposed of. */
  static readonly component: Component<TeamTool> = defineComponent({
    provider: "@fenced/agentchat:TeamTool",
    componentType: "tool",
    schema: z.strictObject({
      team: componentModelSchema,
      name: z.string().optional(),
      description: z.string().optional(),
      returnValueAsLastMessage: z.boolean().optional(),
    }),
    load: async ({ team, ...options }, context) => {
      const tool = new TeamTool(await context.load<Team>(team, "team"), options);
      tool.ownRunner();
      return tool;
    },
  });

  readonly #team: Team;
  readonly #options: TeamToolOptions;

  /**
   * @param team - you own it; this class does not dispose of it.
   * @throws InvalidInputError if it is not a team, or an option is unknown or wrong.
   */
  constructor(team: Team, options: TeamToolOptions = {}) {
    const checked = checkOptions(toolOptions, options, "TeamTool");
    const { name, description, returnValueAsLastMessage = false } = checked;
    checkOptions(teamOption, { team }, "TeamTool");
    super(team, { name: name ?? team.name, description: description ?? team.description, returnValueAsLastMessage });
    this.#team = team;
    this.#options = checked;
  }

  override dumpComponent(): ComponentModel {
    return TeamTool.component.dump({ ...this.#options, team: this.#team.dumpComponent() });
  }
}
