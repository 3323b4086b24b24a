import { basename } from "node:path";
import {
  AssistantAgent,
  CodeExecutorAgent,
  MaxMessageTermination,
  renderToConsole,
  RoundRobinGroupChat,
  TextMentionTermination,
  type ApprovalFunc,
} from "@fenced/agentchat";
import type { ChatCompletionClient, CodeExecutor, ExecutorCapabilities } from "@fenced/core";
import { dataFile, preferredLanguage } from "./default-task.ts";

/** What a chat needs. */
export interface ChatSettings {
  readonly task: string;
  readonly modelClient: ChatCompletionClient;
  readonly codeExecutor: CodeExecutor;
  readonly maxMessages: number;
  readonly approvalFunc?: ApprovalFunc | undefined;
  readonly signal: AbortSignal;
}

/**
 * Lets a coder and a runner speak in turn until the coder has the answer, and shows it as it happens.
 *
 * @returns whether there is an answer; without one the chat came to its limit.
 */
export async function runChat(settings: ChatSettings): Promise<boolean> {
  const { task, modelClient, codeExecutor, maxMessages, approvalFunc, signal } = settings;
  await codeExecutor.files.upload([dataFile]);
  const coder = new AssistantAgent({
    name: "coder",
    modelClient,
    modelClientStream: true,
    systemMessage: systemMessage(codeExecutor.capabilities),
  });
  const runner = new CodeExecutorAgent({ name: "runner", codeExecutor, sources: ["coder"], approvalFunc });
  const answered = new TextMentionTermination("TERMINATE", { sources: ["coder"], unlessCode: true });
  const team = new RoundRobinGroupChat({
    participants: [coder, runner],
    terminationCondition: answered.or(new MaxMessageTermination(maxMessages)),
  });
  await renderToConsole(team.runStream({ task, signal }));
  return answered.terminated;
}

function systemMessage({ languages, displays, stateful }: ExecutorCapabilities): string {
  const charts = displays ? ", and matplotlib for charts, which plt.show() shows" : "";
  return [
    "You solve tasks by writing code. Another agent runs it and answers with its output.",
    `Write one complete program per message, in a fenced block: \`\`\`${preferredLanguage(languages)}.`,
    `Languages that run: ${languages.join(", ")}. Print what you need to know; use only what the standard library has${charts}.`,
    ...(stateful ? ["The variables of one program are there in the next."] : []),
    `The working directory holds ${basename(dataFile)}, measurements of penguins as an array of JSON objects with the keys`,
    '"Species", "Island", "Beak Length (mm)", "Beak Depth (mm)", "Flipper Length (mm)", "Body Mass (g)" and "Sex".',
    "If the code fails, find out why and send a corrected program.",
    "Once its output answers the task, write the answer in a few sentences, without code, and end with TERMINATE.",
  ].join(" ");
}
