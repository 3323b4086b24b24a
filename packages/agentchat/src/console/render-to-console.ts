import { InvalidInputError } from "@fenced/core";
import { checkOptions, objectOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import { isResponse, isTaskResult, type AgentResponse, type TaskResult } from "../agents/chat-agent.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { isAgentMessage, isChatMessage } from "../messages/message-guards.ts";
import { ChatScreen } from "./chat-screen.ts";
import { createPaint, wantsColors } from "./terminal-colors.ts";

/** How a chat is shown. */
export interface RenderToConsoleOptions {
  /** Where to write; stays open. Default: standard output. */
  readonly output?: NodeJS.WritableStream | undefined;
  /** Default: true on a terminal; the environment variables `NO_COLOR` and `FORCE_COLOR` override it. */
  readonly colors?: boolean | undefined;
  /** End with the number of messages and tokens, the time, and why the chat stopped. Default: true. */
  readonly summary?: boolean | undefined;
}

const consoleOptions: z.ZodType<RenderToConsoleOptions> = optionsSchema({
  output: objectOption<NodeJS.WritableStream>(["write", "once"], "a writable stream").exactOptional(),
  colors: z.boolean().exactOptional(),
  summary: z.boolean().exactOptional(),
} satisfies OptionSchemas<RenderToConsoleOptions>);

/**
 * Shows a chat as it happens: text as it is written, code and output in their own colours. Removes control sequences
 * from what models and programs wrote, and writes nothing to a terminal while a question is waiting there. Rethrows
 * what the stream throws.
 *
 * @returns the stream's last item: the `TaskResult` of a run, or the `AgentResponse` of `onMessagesStream`.
 *
 * @example
 * const { stopReason } = await renderToConsole(team.runStream({ task: "Plot the temperatures of July." }));
 */
export async function renderToConsole<Last extends TaskResult | AgentResponse>(
  stream: AsyncIterable<AgentMessage | Last>,
  options: RenderToConsoleOptions = {},
): Promise<Last> {
  const checked = checkOptions(consoleOptions, options, "renderToConsole");
  const { output = process.stdout, colors = wantsColors(output), summary = true } = checked;
  const started = performance.now();
  const screen = new ChatScreen(output, createPaint(colors));
  let last: Last | undefined;
  try {
    for await (const item of stream) {
      if (isAgentMessage(item)) await screen.show(item);
      else if (isLast(item)) last = item;
    }
    if (last !== undefined && isResponse(last)) await screen.show(last.chatMessage);
  } finally {
    await screen.endText();
  }
  if (last === undefined) throw endedEarly();
  if (summary) await screen.section("Summary", summaryText(last, performance.now() - started), "note");
  return last;
}

function isLast<Last extends TaskResult | AgentResponse>(item: AgentMessage | Last): item is Last {
  return isResponse(item) || isTaskResult(item);
}

function endedEarly(): InvalidInputError {
  return new InvalidInputError("The stream ended without a TaskResult or AgentResponse", {
    remedy: "Pass what runStream() or onMessagesStream() returned, and do not read from it elsewhere.",
  });
}

function summaryText(last: TaskResult | AgentResponse, elapsedMs: number): string {
  const messages = isResponse(last) ? [...last.innerMessages, last.chatMessage] : last.messages;
  const events = messages.filter((message) => !isChatMessage(message)).length;
  const prompt = sum(messages.map(({ modelsUsage }) => modelsUsage?.promptTokens ?? 0));
  const completion = sum(messages.map(({ modelsUsage }) => modelsUsage?.completionTokens ?? 0));
  const lines = [
    `Messages: ${messages.length - events}${events > 0 ? ` and ${events} events` : ""}`,
    `Tokens:   ${prompt} in, ${completion} out`,
    `Time:     ${(elapsedMs / 1000).toFixed(1)} s`,
  ];
  if (isTaskResult(last) && last.stopReason !== undefined) lines.push(`Stopped:  ${last.stopReason}`);
  return lines.join("\n");
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
