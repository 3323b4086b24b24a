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

/** Options of a `CodeExecutorAgent`. */
export interface CodeExecutorAgentOptions {
  /** See `BaseChatAgentOptions.name`. */
  readonly name: string;
  /** Runs the code. The agent starts it when needed; you stop it. */
  readonly codeExecutor: CodeExecutor;
  /** Writes the code and reflects on its output. Default: none; the agent runs the code that it receives. */
  readonly modelClient?: ChatCompletionClient | undefined;
  /** Yield the model's text as it is generated. Default: false. */
  readonly modelClientStream?: boolean | undefined;
  /** Maximum retries after the model's code fails. Default: 0. */
  readonly maxRetriesOnError?: number | undefined;
  /** The system message of the model. Default: explains how to write code, in which languages, and with which functions. */
  readonly systemMessage?: string | undefined;
  /** What the agent does, for selectors and tools. Default: a general text. */
  readonly description?: string | undefined;
  /** Without `modelClient`: names of the agents whose code it runs. Default: all agents. */
  readonly sources?: readonly string[] | undefined;
  /** Run only these of the executor's languages. Default: all of them. */
  readonly supportedLanguages?: readonly string[] | undefined;
  /** Called before code runs; may refuse it. Default: everything runs. */
  readonly approvalFunc?: ApprovalFunc | undefined;
  /** Requests approval in the stream and waits for the answer; cannot be combined with `approvalFunc`. */
  readonly pendingApprovals?: PendingApprovals | undefined;
  /** Maximum characters of output in the answer, for the model and in the state; longer output keeps its head and tail. Default: 30,000. */
  readonly maxOutputCharacters?: number | undefined;
  /** Which messages the model sees. Do not share it between agents. Default: an `UnboundedChatCompletionContext`. */
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
