import type { ChatCompletionClient, CodeExecutor } from "@fenced/core";
import {
  callbackOption,
  codeExecutorOption,
  modelClientOption,
  objectOption,
  optionsSchema,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import { type ChatCompletionContext, contextOption } from "../contexts/chat-completion-context.ts";
import type { ApprovalFunc } from "../execution/code-approval.ts";
import type { PendingApprovals } from "../execution/pending-approvals.ts";
import { agentName } from "./base-chat-agent.ts";

/** What a `CodeExecutorAgent` is made from. */
export interface CodeExecutorAgentOptions {
  /** See `BaseChatAgentOptions.name`. */
  readonly name: string;
  /** Where the code runs. Started when it is needed; stays the caller's, who stops it. */
  readonly codeExecutor: CodeExecutor;
  /** Writes the code and reflects on its output. Default: none, the agent runs the code that it receives. */
  readonly modelClient?: ChatCompletionClient | undefined;
  /** Yield the model's text as it comes. Default: false. */
  readonly modelClientStream?: boolean | undefined;
  /** How often the model may try again after its code failed. Default: 0. */
  readonly maxRetriesOnError?: number | undefined;
  /** For the model. Default: tells it how to write code, in which languages, and with which functions. */
  readonly systemMessage?: string | undefined;
  /** What the agent is for. Default: a general text. */
  readonly description?: string | undefined;
  /** Without `modelClient`: names of the agents whose code runs. Default: everyone's. */
  readonly sources?: readonly string[] | undefined;
  /** Run only these of the executor's languages. Default: all of them. */
  readonly supportedLanguages?: readonly string[] | undefined;
  /** Sees the code before it runs and may refuse. Default: everything runs. */
  readonly approvalFunc?: ApprovalFunc | undefined;
  /** Asks for approval in the stream, and waits for an answer from elsewhere; not together with `approvalFunc`. */
  readonly pendingApprovals?: PendingApprovals | undefined;
  /** Characters of a run's output that the model, the answer and the state get; of more, head and tail. Default: 30,000. */
  readonly maxOutputCharacters?: number | undefined;
  /** The memory of the model. Not to be shared between agents. Default: an `UnboundedChatCompletionContext`. */
  readonly modelContext?: ChatCompletionContext | undefined;
}

/** Checks the options. */
export const codeExecutorAgentOptions: z.ZodType<CodeExecutorAgentOptions> = optionsSchema({
  name: agentName,
  codeExecutor: codeExecutorOption,
  modelClient: modelClientOption.exactOptional(),
  modelClientStream: z.boolean().exactOptional(),
  maxRetriesOnError: wholeNumberOption({ from: 0 }).exactOptional(),
  systemMessage: z.string().exactOptional(),
  description: z.string().exactOptional(),
  sources: z.array(z.string()).exactOptional(),
  supportedLanguages: z.array(z.string()).exactOptional(),
  approvalFunc: callbackOption<ApprovalFunc>().exactOptional(),
  pendingApprovals: objectOption<PendingApprovals>(["wait", "answer"], "a PendingApprovals").exactOptional(),
  maxOutputCharacters: wholeNumberOption({ from: 0, unit: "characters" }).exactOptional(),
  modelContext: contextOption.exactOptional(),
} satisfies OptionSchemas<CodeExecutorAgentOptions>);
