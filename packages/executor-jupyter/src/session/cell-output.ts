import type { BlockEvent } from "@fenced/executor-kit";
import type { BlockDisplays, RichOutput } from "@fenced/executor-kit/displays";
import type { IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { field, textField, texts } from "../fields.ts";
import { leftOutField } from "../kernel/wire-message.ts";

/** What servers write instead of output that came too fast. */
const rateLimited = /IOPub (?:data|message) rate exceeded/;

/** Turns what a kernel sends for one cell into the events of a block. */
export class CellOutput {
  readonly #displays: BlockDisplays;
  #clearsAtNext = false;
  #error: { readonly name: string; readonly value: string } | undefined;
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
    if (!this.#error) return 0;
    return this.#systemExit() ?? 1;
  }

  /** The events of a message. Code can send anything: any field may be missing or have the wrong type. */
  async events({ header, content }: IMessage): Promise<BlockEvent[]> {
    const type = textField(header, "msg_type");
    if (type === "clear_output") return this.#clear(field(content, "wait") === true);
    const events = await this.#outputs(type, content);
    if (events.length === 0 || !this.#clearsAtNext) return events;
    this.#clearsAtNext = false;
    return [{ type: "clear" }, ...events];
  }

  /** The events of a reply that reports an error which no output reported. */
  fail(reply: Readonly<Record<string, unknown>>): BlockEvent[] {
    if (reply["status"] === "ok" || this.#error) return [];
    const lines = texts(reply["traceback"]);
    const value = textField(reply, "evalue") || textField(reply, "status");
    return this.#fail(textField(reply, "ename"), value, lines.length > 0 ? lines : [`The cell ended: ${value}`]);
  }

  async #outputs(type: string, content: unknown): Promise<BlockEvent[]> {
    const leftOut = textField(content, leftOutField);
    if (leftOut !== "") return this.#displays.leaveOut(leftOut);
    switch (type) {
      case "stream":
        return this.#text(textField(content, "name") === "stderr" ? "stderr" : "stdout", textField(content, "text"));
      case "error":
        return this.#fail(
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

function richOutput(content: unknown, isUpdate: boolean): RichOutput {
  const displayId = textField(field(content, "transient"), "display_id");
  return { data: field(content, "data"), isUpdate, ...(displayId === "" ? {} : { displayId }) };
}

/** Text without the escape sequences that color it in a terminal. */
function withoutAnsi(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what this is about
  return text.replaceAll(/\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)|[@-Z\\-_])/g, "");
}
