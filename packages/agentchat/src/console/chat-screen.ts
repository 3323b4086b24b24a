import { sanitizeTerminalText, terminalLines } from "@fenced/core";
import { noQuestionOnTerminal } from "../common/ask-on-terminal.ts";
import type { AgentMessage, CodeOutputEvent, ModelClientStreamingChunkEvent } from "../messages/agent-event.ts";
import { messageToText } from "../messages/message-to-text.ts";
import { MarkdownPainter } from "./markdown-painter.ts";
import type { Look, Paint } from "./terminal-colors.ts";

/** What a program has printed while it runs. */
interface LiveOutput {
  readonly source: string;
  text: string;
  /** True if its last line may continue. */
  isOpen: boolean;
}

/** Writes a chat to a terminal or file, each message under a header. Does not repeat streamed text. */
export class ChatScreen {
  readonly #output: NodeJS.WritableStream;
  readonly #paint: Paint;
  /** Streamed texts whose message has not arrived yet, by message id. */
  readonly #streamed: Map<string, string> = new Map();
  #open: { readonly id: string; readonly painter: MarkdownPainter } | undefined;
  #live: LiveOutput | undefined;

  constructor(output: NodeJS.WritableStream, paint: Paint) {
    this.#output = output;
    this.#paint = paint;
  }

  /** Shows a message, an event, or the next piece of a text. */
  async show(message: AgentMessage): Promise<void> {
    if (message.type === "ModelClientStreamingChunkEvent") {
      await this.#showChunk(message);
      return;
    }
    if (message.type === "CodeOutputEvent") {
      await this.#showOutput(message);
      return;
    }
    await this.endText();
    if (message.type === "UserInputRequestedEvent") return;
    const text = this.#withoutOutput(message);
    const streamed = this.#streamed.get(message.id);
    this.#streamed.delete(message.id);
    if (streamed === undefined) await this.section(headerOf(message), text, lookOf(message));
    else if (text.startsWith(streamed)) await this.#showRest(text.slice(streamed.length));
  }

  /** Shows a text under a header; as Markdown unless `look` is given. */
  async section(header: string, text: string, look?: Look): Promise<void> {
    await this.#writeHeader(header);
    await this.#showText(text, look);
  }

  /** Ends the line of a text that was being streamed. */
  async endText(): Promise<void> {
    if (this.#live?.isOpen === true && !this.#live.text.endsWith("\n")) await this.#write("\n");
    if (this.#live) this.#live.isOpen = false;
    if (this.#open === undefined) return;
    const rest = this.#open.painter.end();
    this.#open = undefined;
    await this.#write(`${rest}\n`);
  }

  /** Shows what a program prints while it runs. */
  async #showOutput({ source, stream, text }: CodeOutputEvent): Promise<void> {
    if (this.#live?.isOpen !== true) {
      await this.endText();
      await this.#writeHeader(`${source} (output)`);
      this.#live = { source, text: "", isOpen: true };
    }
    this.#live.text += text;
    await this.#write(this.#paint(stream === "stderr" ? "failure" : "output", sanitizeTerminalText(text)));
  }

  /** A message's text without the output that was shown while the program ran. */
  #withoutOutput(message: AgentMessage): string {
    const text = messageToText(message);
    const live = this.#live;
    const isResult = message.type === "CodeExecutionEvent" || "exitCode" in message.metadata;
    if (live?.source !== message.source || !isResult) return text;
    this.#live = undefined;
    // The message has what a terminal shows at the end.
    const output = terminalLines(live.text).trimEnd();
    const at = output === "" ? -1 : text.indexOf(output);
    if (at === -1) return text;
    const [before, after] = [text.slice(0, at).trimEnd(), text.slice(at + output.length).trim()];
    return [before.replace(/Its output:$/, "Its output is above."), after].filter((part) => part !== "").join("\n\n");
  }

  async #showChunk({ content, fullMessageId, source }: ModelClientStreamingChunkEvent): Promise<void> {
    if (this.#open?.id !== fullMessageId) {
      await this.endText();
      this.#open = { id: fullMessageId, painter: new MarkdownPainter(this.#paint) };
      await this.#writeHeader(source);
    }
    this.#streamed.set(fullMessageId, (this.#streamed.get(fullMessageId) ?? "") + content);
    await this.#write(this.#open.painter.push(sanitizeTerminalText(content)));
  }

  /** Shows what a message contains beyond its streamed text, whose line has been ended. */
  async #showRest(text: string): Promise<void> {
    if (text.trim() !== "") await this.#showText(text.replace(/^\n/, ""));
  }

  async #showText(text: string, look?: Look): Promise<void> {
    const clean = withoutLastBreaks(sanitizeTerminalText(text));
    const painter = new MarkdownPainter(this.#paint);
    if (clean === "") return;
    const painted = look === undefined ? painter.push(clean) + painter.end() : this.#paint(look, clean);
    await this.#write(`${painted}\n`);
  }

  async #writeHeader(header: string): Promise<void> {
    const line = `---------- ${sanitizeTerminalText(header).replaceAll(/\s+/g, " ")} ----------`;
    await this.#write(`${this.#paint("header", line)}\n`);
  }

  async #write(text: string): Promise<void> {
    if (text === "") return;
    if ("isTTY" in this.#output && this.#output.isTTY === true) await noQuestionOnTerminal();
    await new Promise<void>((resolve, reject) => {
      this.#output.write(text, (error) => (error ? reject(error) : resolve()));
    });
  }
}

function headerOf(message: AgentMessage): string {
  const note = noteOf(message);
  return note === undefined ? message.source : `${message.source} (${note})`;
}

function noteOf(message: AgentMessage): string | undefined {
  switch (message.type) {
    case "CodeExecutionEvent":
      return `exit code ${message.result.exitCode}`;
    case "CodeGenerationEvent":
      return message.retryAttempt === 0 ? "code" : `code, attempt ${message.retryAttempt + 1}`;
    case "HandoffMessage":
      return `to ${message.target}`;
    case "MemoryQueryEvent":
      return "memory";
    case "SelectSpeakerEvent":
      return "next";
    case "SelectorEvent":
      return "selector";
    case "StopMessage":
      return "stop";
    case "ThoughtEvent":
      return "thought";
    case "ToolCallExecutionEvent":
      return "tool results";
    case "ToolCallRequestEvent":
      return "tool calls";
    default: {
      const { exitCode } = message.metadata;
      return exitCode === undefined ? undefined : `exit code ${exitCode}`;
    }
  }
}

function lookOf(message: AgentMessage): Look | undefined {
  switch (message.type) {
    case "CodeExecutionEvent":
      return message.result.exitCode === 0 ? "output" : "failure";
    case "MemoryQueryEvent":
    case "SelectSpeakerEvent":
    case "SelectorEvent":
    case "ThoughtEvent":
      return "note";
    case "ToolCallRequestEvent":
      return "code";
    case "ToolCallExecutionEvent":
      return message.content.some(({ isError }) => isError) ? "failure" : "output";
    case "MultiModalMessage":
    case "TextMessage": {
      const { exitCode } = message.metadata;
      if (exitCode === undefined) return undefined;
      return exitCode === "0" ? "output" : "failure";
    }
    default:
      return undefined;
  }
}

/** Not by an expression: in a text of many line breaks that ends in something else, it would look at each again and again. */
function withoutLastBreaks(text: string): string {
  let end = text.length;
  while (text[end - 1] === "\n") end -= 1;
  return text.slice(0, end);
}
