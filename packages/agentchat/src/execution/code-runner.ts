import {
  BackendUnavailableError,
  type CodeBlock,
  type CodeExecutor,
  type CodeResult,
  codeResultForModel,
  displayImage,
  type ExecutionEvent,
  imageFromBytes,
  type ModelMessage,
} from "@fenced/core";
import { abortable } from "../common/abortable.ts";
import type { CodeApprovalRequestEvent, CodeOutputEvent } from "../messages/agent-event.ts";
import type { ChatMessage, ImagePart } from "../messages/chat-message.ts";
import {
  codeApprovalRequestEvent,
  codeOutputEvent,
  multiModalMessage,
  textMessage,
} from "../messages/create-message.ts";
import type { MessageOptions } from "../messages/message-base.ts";
import { type ApprovalFunc, type ApprovalResponse, askApproval } from "./code-approval.ts";
import { type CodeRequest, CodeRuns } from "./code-runs.ts";
import type { PendingApprovals } from "./pending-approvals.ts";
import { runnableLanguages } from "./runnable-code.ts";
import { shortenCodeResult } from "./shorten-code-result.ts";

const startGraceMs = 1000;

/** Maximum live output of a run; the executor limits the result. */
const mostLiveCharacters = 200_000;
const noMoreLive = "\n[... more output is not shown while the code runs ...]\n";

/** The outcome of a request to run code. */
export interface CodeOutcome {
  readonly result: CodeResult;
  /** The outcome in words, for a model. */
  readonly text: string;
  readonly images: readonly ImagePart[];
  /** Whether the code was not run because it was not approved. */
  readonly isRefused: boolean;
}

/** What a run yields before its result. */
export type CodeRunEvent = CodeOutputEvent | CodeApprovalRequestEvent;

// The model's client decides which images the model gets.
const allImages = { maxImages: Infinity, maxImageBytes: Infinity };

/** Who asked for a run, and why. */
interface RunOptions {
  /** What led to the code, for the approval. */
  readonly context: readonly ModelMessage[];
  /** The agent's name. */
  readonly source: string;
  readonly signal: AbortSignal | undefined;
}

/** The same for a run, with the ids of the messages that contain the code. */
type CodeRunOptions = RunOptions & Pick<CodeRequest, "messageIds">;

/** Options of `CodeRunner`. */
export interface CodeRunnerOptions {
  readonly codeExecutor: CodeExecutor;
  readonly supportedLanguages?: readonly string[] | undefined;
  readonly approvalFunc?: ApprovalFunc | undefined;
  readonly pendingApprovals?: PendingApprovals | undefined;
  readonly maxOutputCharacters?: number | undefined;
}

/** Runs code for an agent: starts the executor, asks for approval, and puts the result in words. */
export class CodeRunner {
  readonly #options: CodeRunnerOptions;
  readonly #runs: CodeRuns;

  constructor(options: CodeRunnerOptions) {
    this.#options = options;
    this.#runs = new CodeRuns(options.codeExecutor);
  }

  /** Starts the executor and returns the languages that run. */
  async start(signal: AbortSignal | undefined): Promise<string[]> {
    const { codeExecutor, supportedLanguages } = this.#options;
    await abortable(codeExecutor.start(), { signal, graceMs: startGraceMs });
    return runnableLanguages(codeExecutor, supportedLanguages);
  }

  /** Runs the blocks if they are approved. Yields output as it is printed. */
  async *run(
    blocks: readonly CodeBlock[],
    { context, source, messageIds, signal }: CodeRunOptions,
  ): AsyncGenerator<CodeRunEvent, CodeOutcome, void> {
    const { maxOutputCharacters = 30_000 } = this.#options;
    const { approved, reason } = yield* this.#approve(blocks, { context, source, signal });
    if (!approved) return refused(reason);
    signal?.throwIfAborted();
    const whole = yield* liveOutput(this.#runs.events({ blocks, source, messageIds, signal }), source);
    const { text } = codeResultForModel(whole, blocks.length, { ...allImages, maxOutputCharacters });
    const result = shortenCodeResult(whole, maxOutputCharacters);
    return { result, text, images: codeResultImages(whole), isRefused: false };
  }

  async *#approve(
    blocks: readonly CodeBlock[],
    { context, source, signal }: RunOptions,
  ): AsyncGenerator<CodeApprovalRequestEvent, ApprovalResponse, void> {
    const { approvalFunc, pendingApprovals } = this.#options;
    if (approvalFunc) return askApproval(approvalFunc, { blocks, context }, { source, signal });
    if (!pendingApprovals) return { approved: true, reason: "" };
    const request = codeApprovalRequestEvent({ source, blocks });
    // The answer may come as soon as the event has been read.
    const { response, giveUp } = pendingApprovals.wait({ id: request.id, source, blocks }, signal);
    try {
      yield request;
      return await response;
    } finally {
      giveUp();
    }
  }
}

/** The images in a result's displays, at most one per display. */
function codeResultImages({ displays }: CodeResult): ImagePart[] {
  return displays.flatMap((display) => {
    const image = displayImage(display);
    if (image === undefined) return [];
    const { bytes, mediaType, path } = image;
    return [{ ...imageFromBytes(bytes, mediaType), ...(path === undefined ? {} : { path }) }];
  });
}

/** Yields what is printed, up to a limit, and returns the result. */
async function* liveOutput(
  events: AsyncIterable<ExecutionEvent>,
  source: string,
): AsyncGenerator<CodeOutputEvent, CodeResult, void> {
  let left = mostLiveCharacters;
  for await (const event of events) {
    if (event.type === "result") return event.result;
    if ((event.type !== "stdout" && event.type !== "stderr") || left < 0) continue;
    const { type: stream, index, text } = event;
    left -= text.length;
    yield codeOutputEvent({ source, index, stream, text: left < 0 ? `${text.slice(0, left)}${noMoreLive}` : text });
  }
  throw new BackendUnavailableError("The executor's stream ended without a result", {
    remedy: "This is a bug in the executor: report it to its authors.",
  });
}

/**
 * Creates an agent's answer from text and images. Its metadata contains the exit code, and `approved: "false"` if the
 * code was refused.
 */
export function codeAnswer(
  { result, images, isRefused }: CodeOutcome,
  { content, ...options }: MessageOptions & { readonly content: string },
): ChatMessage {
  const metadata = {
    ...options.metadata,
    exitCode: String(result.exitCode),
    ...(isRefused ? { approved: "false" } : {}),
  };
  const common = { ...options, metadata };
  if (images.length === 0) return textMessage({ ...common, content });
  return multiModalMessage({ ...common, content: [{ type: "text", text: content }, ...images] });
}

function refused(reason: string): CodeOutcome {
  const text = `The code was not run, because it was not approved. Reason: ${reason}`;
  const result: CodeResult = {
    exitCode: 1,
    output: text,
    stdout: "",
    stderr: text,
    displays: [],
    timedOut: false,
    truncated: false,
    stateLost: false,
    durationMs: 0,
    blocks: [],
  };
  return { result, text, images: [], isRefused: true };
}
