import type * as z from "zod";
import type { ApproveSkill } from "./consent.ts";

/** What a tool gets with its arguments, in the names of both the AI SDK and `@fenced/agentchat`. */
export interface SkillToolCallOptions {
  /** Ends the call, as the AI SDK names it. */
  readonly abortSignal?: AbortSignal | undefined;
  /** The same, as `@fenced/agentchat` names it. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Decides about this call instead of the option `approve`, where each request has a user of its own to ask. What it approved is
   * remembered for calls with this same function only.
   */
  readonly approve?: ApproveSkill | undefined;
}

/**
 * A tool that is one of the Vercel AI SDK and one of `@fenced/agentchat` at once; an MCP server registers it with its
 * `inputSchema`.
 */
export interface SkillTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: z.ZodObject;
  /** The same schema. */
  readonly parameters: z.ZodObject;
  /**
   * @throws InvalidInputError if the model's arguments are wrong, or the skill changed into something that is not
   * accepted; and the errors of the executor.
   */
  execute(input: unknown, options: SkillToolCallOptions): Promise<string>;
}
