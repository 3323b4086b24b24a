import {
  type ChatCompletionClient,
  type CodeBlock,
  type JsonObject,
  ModelClientError,
  type ModelMessage,
  type ModelUsage,
  savedFileNames,
} from "@fenced/core";
import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import { codeAnswer, type CodeOutcome, type CodeRunner } from "../execution/code-runner.ts";
import { findFencedCode, isMeantToRun, noCodeMessage, notRunNote, withNote } from "../execution/runnable-code.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { codeExecutionEvent, codeGenerationEvent, textMessage, thoughtEvent } from "../messages/create-message.ts";
import { messageToModelMessages } from "../messages/message-to-model-messages.ts";
import type { AgentResponse } from "./chat-agent.ts";
import { askRetryDecision } from "./retry-decision.ts";
import { cutMetadata, type ModelAnswer, type Turn } from "./turn.ts";
import { WaitingForPersonError } from "./waiting-for-person-error.ts";

type Items<Result> = AsyncGenerator<AgentMessage | AgentResponse, Result, void>;

/** Options of `codeWritingTurn`. */
export interface CodeWritingTurnOptions {
  readonly turn: Turn;
  readonly runner: CodeRunner;
  readonly modelClient: ChatCompletionClient;
  readonly modelContext: ChatCompletionContext;
  readonly stream: boolean;
  readonly maxRetries: number;
  readonly systemMessage: string;
  /** The languages that run. */
  readonly languages: readonly string[];
  /** Where the last turn stopped, if it was waiting for an approval: this turn continues from there. */
  readonly waiting: WaitingCode | undefined;
  /** Called when code waits for an approval, and with `undefined` when it no longer does. */
  readonly onWaiting: (waiting: WaitingCode | undefined) => void;
}

/** Code that waits for an approval, as data. */
export interface WaitingCode extends WrittenCode {
  /** What the model's memory held when the code was written. */
  readonly modelContext: JsonObject;
  /** The ids of the messages that the turn received: they are in that memory, and may be passed again. */
  readonly heard: readonly string[];
  /** How often the code had failed before. */
  readonly attempt: number;
}

/** A model's text that contains code. */
interface WrittenCode {
  /** The id of the message that contains it. */
  readonly id: string;
  readonly content: string;
}

/** The same, fresh from the model. */
interface Written extends WrittenCode {
  readonly modelsUsage?: ModelUsage;
  readonly metadata?: Readonly<Record<string, string>>;
}

const reflectionRequest =
  "Now answer the task from what the code printed, for someone who sees neither the code nor its output. " +
  "If it failed, say so and why. Do not write code in this answer.";

/** Has the model write code, runs it, has the model correct code that failed, and answers with its reflection on the output. */
export async function* codeWritingTurn(messages: readonly ChatMessage[], options: CodeWritingTurnOptions): Items<void> {
  const { turn, modelContext, maxRetries } = options;
  let { waiting } = options;
  if (waiting) await modelContext.loadState(waiting.modelContext);
  const heard = new Set(waiting?.heard);
  const fresh = messages.filter(({ id }) => !heard.has(id));
  for (const message of fresh.flatMap(messageToModelMessages)) await modelContext.addMessage(message);
  for (const { id } of fresh) heard.add(id);

  for (let attempt = waiting?.attempt ?? 0; ; attempt++) {
    const { id, content, modelsUsage, metadata = {} }: Written = waiting ?? (yield* write(options));
    waiting = undefined;
    const code = findFencedCode([content], options.languages);
    const { runnable } = code;
    const note = notRunNote(code, options.languages);
    const common = { id, source: turn.source, metadata, ...(modelsUsage && { modelsUsage }), content };
    if (runnable.length === 0) {
      const isAnswer = !isMeantToRun(code);
      if (!isAnswer) await modelContext.addMessage(userMessage(noCodeMessage(code, options.languages), turn.source));
      if (isAnswer || attempt >= maxRetries) return yield turn.response(textMessage(common));
      yield turn.record(thoughtEvent(common));
      continue;
    }
    yield turn.record(codeGenerationEvent({ ...common, codeBlocks: runnable, retryAttempt: attempt }));
    const context = await modelContext.getMessages();
    const outcome = yield* runOrWait(runnable, { ...options, context, written: { id, content }, attempt, heard });
    const { result } = outcome;
    const approval = outcome.isRefused ? { approved: "false" } : {};
    yield turn.record(codeExecutionEvent({ source: turn.source, metadata: approval, result, retryAttempt: attempt }));
    await modelContext.addMessage(outcomeMessage({ ...outcome, text: withNote(outcome.text, note) }, turn.source));

    const mayRetry = result.exitCode !== 0 && attempt < maxRetries;
    if (!mayRetry || !(yield* decideToRetry(options))) return yield* reflect(outcome, options);
  }
}

/** Has the model write, and remembers its answer. */
async function* write(options: CodeWritingTurnOptions): Items<Written> {
  const { turn, modelContext } = options;
  const { messageId: id, result } = yield* ask(options, []);
  const content = textOf({ result, messageId: id }, turn.source);
  await modelContext.addMessage(turn.memoryOf(result));
  return { id, content, modelsUsage: result.usage, metadata: cutMetadata(result) };
}

/** Runs the code, or saves what another turn needs to continue here once there is an answer. */
async function* runOrWait(
  blocks: readonly CodeBlock[],
  options: CodeWritingTurnOptions & {
    readonly context: readonly ModelMessage[];
    readonly written: WrittenCode;
    readonly attempt: number;
    readonly heard: ReadonlySet<string>;
  },
): Items<CodeOutcome> {
  const { runner, turn, context, modelContext, written, attempt, heard } = options;
  try {
    const outcome = yield* runner.run(blocks, {
      context,
      source: turn.source,
      messageIds: [written.id],
      signal: turn.signal,
    });
    options.onWaiting(undefined);
    return outcome;
  } catch (error) {
    if (WaitingForPersonError.isInstance(error)) {
      options.onWaiting({ ...written, modelContext: await modelContext.saveState(), heard: [...heard], attempt });
    }
    throw error;
  }
}

async function* decideToRetry(options: CodeWritingTurnOptions): Items<boolean> {
  const { turn, modelClient, modelContext } = options;
  const { source, signal } = turn;
  const messages = await conversation(options);
  const { retry, reason, usage, thought = "" } = yield* askRetryDecision(messages, { modelClient, source, signal });
  if (thought !== "") yield turn.record(thoughtEvent({ source, content: thought }));
  yield turn.record(thoughtEvent({ source, content: reason, modelsUsage: usage }));
  if (!retry) return false;
  await modelContext.addMessage({ role: "assistant", content: reason, source });
  await modelContext.addMessage(userMessage("Try again: write the corrected code, all of it.", source));
  return true;
}

async function* reflect(outcome: CodeOutcome, options: CodeWritingTurnOptions): Items<void> {
  const { turn, modelClient, modelContext } = options;
  const { source } = turn;
  const answer = yield* ask(options, [{ role: "user", content: reflectionRequest, source }]);
  const text = textOf(answer, source);
  await modelContext.addMessage(turn.memoryOf(answer.result));

  const images = modelClient.modelInfo.vision ? outcome.images : [];
  const files = savedFileNames(outcome.result.displays);
  const content = files.length === 0 ? text : `${text}\n\nSaved files:\n${files.join("\n")}`;
  const metadata = cutMetadata(answer.result);
  const common = { id: answer.messageId, source, metadata, modelsUsage: answer.result.usage };
  yield turn.response(codeAnswer({ ...outcome, images }, { ...common, content }));
}

async function* ask(
  options: CodeWritingTurnOptions,
  more: readonly ModelMessage[],
): AsyncGenerator<AgentMessage, ModelAnswer, void> {
  const { turn, modelClient, stream } = options;
  return yield* turn.askModel([...(await conversation(options)), ...more], { modelClient, stream });
}

async function conversation({ systemMessage, modelContext }: CodeWritingTurnOptions): Promise<ModelMessage[]> {
  const system: ModelMessage[] = systemMessage === "" ? [] : [{ role: "system", content: systemMessage }];
  return [...system, ...(await modelContext.getMessages())];
}

function userMessage(content: string, source: string): ModelMessage {
  return { role: "user", content, source };
}

function outcomeMessage({ text, images }: CodeOutcome, source: string): ModelMessage {
  const content = images.length === 0 ? text : [{ type: "text" as const, text }, ...images];
  return { role: "user", content, source };
}

function textOf({ result }: ModelAnswer, source: string): string {
  if (typeof result.content === "string") return result.content;
  throw new ModelClientError(`The model of agent "${source}" called tools, but was offered none`, {
    remedy: "Use a model that answers with text when it has no tools.",
  });
}
