import {
  type CodeBlock,
  type CodeExecutor,
  type CodeResult,
  describeCodeResult,
  type ModelMessage,
} from "@fenced/core";
import { abortable } from "../common/abortable.ts";
import { signalOption } from "../common/signal-option.ts";
import type { ChatMessage, ImagePart } from "../messages/chat-message.ts";
import { multiModalMessage, textMessage } from "../messages/create-message.ts";
import type { MessageOptions } from "../messages/message-base.ts";
import { type ApprovalFunc, askApproval } from "./code-approval.ts";
import { codeResultImages } from "./code-result-images.ts";
import { runnableLanguages } from "./runnable-code.ts";

const startGraceMs = 1000;

/** What came of code that wanted to run. */
export interface CodeOutcome {
  readonly result: CodeResult;
  /** For a model to read. */
  readonly text: string;
  readonly images: readonly ImagePart[];
}

/** What a `CodeRunner` is made from. */
export interface CodeRunnerOptions {
  readonly codeExecutor: CodeExecutor;
  readonly supportedLanguages: readonly string[] | undefined;
  readonly approvalFunc: ApprovalFunc | undefined;
}

/** Runs code for an agent: starts the executor, asks for approval, and puts the result in words. */
export class CodeRunner {
  readonly #options: CodeRunnerOptions;

  constructor(options: CodeRunnerOptions) {
    this.#options = options;
  }

  /** Starts the executor and returns the languages that run. */
  async start(signal: AbortSignal | undefined): Promise<string[]> {
    const { codeExecutor, supportedLanguages } = this.#options;
    await abortable(codeExecutor.start(), { signal, graceMs: startGraceMs });
    return runnableLanguages(codeExecutor, supportedLanguages);
  }

  /** Runs the blocks, if that is approved. */
  async run(
    blocks: readonly CodeBlock[],
    { context, signal }: { readonly context: readonly ModelMessage[]; readonly signal: AbortSignal | undefined },
  ): Promise<CodeOutcome> {
    const { codeExecutor, approvalFunc } = this.#options;
    if (approvalFunc !== undefined) {
      const { approved, reason } = await askApproval(approvalFunc, { blocks, context }, signal);
      if (!approved) return refused(reason);
    }
    signal?.throwIfAborted();
    const result = await codeExecutor.executeCodeBlocks(blocks, signalOption(signal));
    return { result, text: describeCodeResult(result, blocks.length), images: codeResultImages(result) };
  }
}

/** Text and images as the message that an agent answers with; the result's exit code is in its metadata. */
export function codeAnswer(
  { result, images }: CodeOutcome,
  { content, ...options }: MessageOptions & { readonly content: string },
): ChatMessage {
  const common = { ...options, metadata: { exitCode: String(result.exitCode) } };
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
  return { result, text, images: [] };
}
