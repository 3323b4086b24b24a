import { basename } from "node:path";
import {
  AssistantAgent,
  CodeExecutorAgent,
  MaxMessageTermination,
  RoundRobinGroupChat,
  TextMentionTermination,
  type CodeExecutorAgentOptions,
} from "@fenced/agentchat";
import type { ChatCompletionClient, CodeExecutor, ExecutorCapabilities } from "@fenced/core";
import { dataFile, preferredLanguage } from "./default-task.ts";

/** Settings of a chat's team; without one of the approvals, code runs without asking. */
export interface ChatTeamSettings extends Pick<CodeExecutorAgentOptions, "approvalFunc" | "pendingApprovals"> {
  readonly modelClient: ChatCompletionClient;
  readonly codeExecutor: CodeExecutor;
  readonly maxMessages: number;
  /** True if the user sees the pictures in the workspace. */
  readonly showsPictures?: boolean;
}

/** A coder and a runner who take turns, and the condition that is met once the coder has the answer. */
export interface ChatTeam {
  readonly team: RoundRobinGroupChat;
  readonly answered: TextMentionTermination;
}

/** Creates the team. */
export function createChatTeam(settings: ChatTeamSettings): ChatTeam {
  const { modelClient, codeExecutor, maxMessages, showsPictures, approvalFunc, pendingApprovals } = settings;
  const coder = new AssistantAgent({
    name: "coder",
    modelClient,
    modelClientStream: true,
    systemMessage: systemMessage(codeExecutor.capabilities, showsPictures),
  });
  const runner = new CodeExecutorAgent({
    name: "runner",
    codeExecutor,
    sources: ["coder"],
    approvalFunc,
    pendingApprovals,
  });
  const answered = new TextMentionTermination("TERMINATE", { sources: ["coder"], unlessCode: true });
  const team = new RoundRobinGroupChat({
    participants: [coder, runner],
    terminationCondition: answered.or(new MaxMessageTermination(maxMessages)),
  });
  return { team, answered };
}

function systemMessage({ languages, displays, stateful }: ExecutorCapabilities, showsPictures = false): string {
  const written = showsPictures ? "; write a chart to the file chart.svg, and the user sees it" : "";
  const charts = displays ? ", and matplotlib for charts, which plt.show() shows" : written;
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
