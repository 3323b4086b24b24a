import type { BlockEvent } from "@fenced/executor-kit";
import type { BlockDisplays, RichOutput } from "@fenced/executor-kit/displays";
import type { IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { field, textField, texts } from "../fields.ts";
import { leftOutField } from "../kernel/wire-message.ts";

/** What servers write instead of output that came too fast. */
const rateLimited = /IOPub (?:data|message) rate exceeded/;

/** Texts beside a cell's output that are shown. */
const mostPages = 100;

/** Turns what a kernel sends for one cell into the events of a block. */
export class CellOutput {
  readonly #displays: BlockDisplays;
  #failure: { readonly name: string; readonly value: string } | undefined;
  #truncated = false;

  constructor(displays: BlockDisplays) {
    this.#displays = displays;
  }

  /** Whether output is missing because the server dropped some or there was too much. */
  get truncated(): boolean {
    return this.#truncated || this.#displays.truncated;
  }

  /** 0 if the cell succeeded; the code that it passed to `sys.exit`; else 1. */
  get exitCode(): number {
    if (!this.#failure) return 0;
    return this.#systemExit() ?? 1;
  }

  /** The events of a message. Code can send anything: any field may be missing or have the wrong type. */
  async events({ header, content }: IMessage): Promise<BlockEvent[]> {
    const type = textField(header, "msg_type");
    if (type === "clear_output") return this.#displays.clear(field(content, "wait") === true);
    return this.#displays.cleared(await this.#outputs(type, content));
  }

  /** The events at the end of the cell. */
  end(): BlockEvent[] {
    return this.#displays.end();
  }

  /** The events of a reply: an error which no output reported, and what a notebook shows beside the output. */
  reply(reply: Readonly<Record<string, unknown>>): BlockEvent[] {
    return [...this.#fail(reply), ...this.#pages(reply)];
  }

  async #outputs(type: string, content: unknown): Promise<BlockEvent[]> {
    const leftOut = textField(content, leftOutField);
    if (leftOut !== "") return this.#displays.leaveOut(leftOut);
    switch (type) {
      case "stream":
        return this.#text(textField(content, "name") === "stderr" ? "stderr" : "stdout", textField(content, "text"));
      case "error":
        return this.#error(
          textField(content, "ename"),
          textField(content, "evalue"),
          texts(field(content, "traceback")),
        );
      case "input_request":
        return this.#text("stdout", textField(content, "prompt"));
      case "display_data":
      case "execute_result":
      case "update_display_data":
        return this.#displays.events(richOutput(content, type === "update_display_data"));
      default:
        return [];
    }
  }

  #text(name: "stdout" | "stderr", text: string): BlockEvent[] {
    if (name === "stderr" && rateLimited.test(text)) this.#truncated = true;
    return text === "" ? [] : [{ type: name, data: text }];
  }

  #fail(reply: Readonly<Record<string, unknown>>): BlockEvent[] {
    if (reply["status"] === "ok" || this.#failure) return [];
    const lines = texts(reply["traceback"]);
    const value = textField(reply, "evalue") || textField(reply, "status");
    return this.#error(textField(reply, "ename"), value, lines.length > 0 ? lines : [`The cell ended: ${value}`]);
  }

  /** Help, and code that a notebook would put in its next cell (`%load`). */
  #pages(reply: Readonly<Record<string, unknown>>): BlockEvent[] {
    const payload = reply["payload"];
    if (!Array.isArray(payload)) return [];
    return payload.slice(0, mostPages).flatMap((page) => {
      const text = this.#displays.textOf(field(page, "data")) ?? textField(page, "text");
      return this.#text("stdout", withLineBreak(withoutAnsi(text)));
    });
  }

  #error(name: string, value: string, traceback: readonly string[]): BlockEvent[] {
    this.#failure = { name, value };
    if (this.#systemExit() === 0) return [];
    const text = withoutAnsi(traceback.length > 0 ? traceback.join("\n") : `${name}: ${value}`);
    return [{ type: "stderr", data: withLineBreak(text) }];
  }

  #systemExit(): number | undefined {
    if (this.#failure?.name !== "SystemExit") return undefined;
    const { value } = this.#failure;
    if (value === "" || value === "None") return 0;
    return /^-?\d+$/.test(value) ? Number(value) & 0xff : undefined;
  }
}

function withLineBreak(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

function richOutput(content: unknown, isUpdate: boolean): RichOutput {
  const displayId = textField(field(content, "transient"), "display_id");
  return { data: field(content, "data"), isUpdate, ...(displayId === "" ? {} : { displayId }) };
}

/** Text without the escape sequences that color it in a terminal. */
function withoutAnsi(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what this is about
  return text.replaceAll(/\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)|[@-Z\\-_])/g, "");
}
