import type { BlockEvent } from "@fenced/executor-kit";
import {
  isClearOutputMsg,
  isDisplayDataMsg,
  isErrorMsg,
  isExecuteResultMsg,
  isInputRequestMsg,
  isStreamMsg,
  isUpdateDisplayDataMsg,
  type IMessage,
} from "@jupyterlab/services/lib/kernel/messages.js";
import type { DisplayBoard, RichOutput } from "../displays/display-board.ts";
import { withoutAnsi } from "../displays/without-ansi.ts";
import { textField, texts } from "../fields.ts";

/** What servers write in place of output that came too fast for them. */
const rateLimited = /IOPub (?:data|message) rate exceeded/;

/** Turns what a kernel sends for one cell into the events of a block. */
export class CellOutput {
  readonly #board: DisplayBoard;
  #clearsAtNext = false;
  #error: { readonly name: string; readonly value: string } | undefined;
  #truncated = false;

  constructor(board: DisplayBoard) {
    this.#board = board;
  }

  /** The server dropped output by itself. */
  get truncated(): boolean {
    return this.#truncated;
  }

  /** 0 if the cell succeeded; what it said if it ended itself with `sys.exit`; else 1. */
  get exitCode(): number {
    if (!this.#error) return 0;
    return this.#systemExit() ?? 1;
  }

  /** The events of a message. */
  async events(message: IMessage): Promise<BlockEvent[]> {
    if (isClearOutputMsg(message)) return this.#clear(message.content.wait);
    const events = await this.#outputs(message);
    if (events.length === 0 || !this.#clearsAtNext) return events;
    this.#clearsAtNext = false;
    return [{ type: "clear" }, ...events];
  }

  /** The events of a reply that tells of an error which no output told of. */
  fail(reply: Readonly<Record<string, unknown>>): BlockEvent[] {
    if (reply["status"] === "ok" || this.#error) return [];
    const lines = texts(reply["traceback"]);
    const value = textField(reply, "evalue") || textField(reply, "status");
    return this.#fail(textField(reply, "ename"), value, lines.length > 0 ? lines : [`The cell ended: ${value}`]);
  }

  async #outputs(message: IMessage): Promise<BlockEvent[]> {
    if (isStreamMsg(message)) return this.#text(message.content.name, message.content.text);
    if (isErrorMsg(message)) {
      const { ename, evalue, traceback } = message.content;
      return this.#fail(ename, evalue, traceback);
    }
    if (isInputRequestMsg(message)) return this.#text("stdout", message.content.prompt);
    const rich = richOutput(message);
    return rich ? this.#board.events(rich) : [];
  }

  #text(name: "stdout" | "stderr", text: string): BlockEvent[] {
    if (name === "stderr" && rateLimited.test(text)) this.#truncated = true;
    return text === "" ? [] : [{ type: name, data: text }];
  }

  #clear(wait: boolean): BlockEvent[] {
    this.#clearsAtNext = wait;
    return wait ? [] : [{ type: "clear" }];
  }

  #fail(name: string, value: string, traceback: readonly string[]): BlockEvent[] {
    this.#error = { name, value };
    if (this.#systemExit() === 0) return [];
    const text = withoutAnsi(traceback.length > 0 ? traceback.join("\n") : `${name}: ${value}`);
    return [{ type: "stderr", data: text.endsWith("\n") ? text : `${text}\n` }];
  }

  #systemExit(): number | undefined {
    if (this.#error?.name !== "SystemExit") return undefined;
    const value = this.#error.value;
    if (value === "" || value === "None") return 0;
    return /^-?\d+$/.test(value) ? Number(value) & 0xff : undefined;
  }
}

function richOutput(message: IMessage): RichOutput | undefined {
  const isUpdate = isUpdateDisplayDataMsg(message);
  if (!isUpdate && !isDisplayDataMsg(message) && !isExecuteResultMsg(message)) return undefined;
  const { data, transient } = message.content;
  const displayId = transient?.display_id;
  return { data: { ...data }, isUpdate, ...(typeof displayId === "string" ? { displayId } : {}) };
}
