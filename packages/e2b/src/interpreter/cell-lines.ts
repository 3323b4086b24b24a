import { isJsonValue, type JsonObject, type JsonValue } from "@fenced/core";
import * as z from "zod";
import type { CellEvent } from "./interpreter.ts";

/** What one execution may show: the number of results, and their size as JSON in characters. */
const [mostResults, mostCharacters] = [1000, 268_435_456];

/** Fields of a result by MIME type. Everything else that is shown is in `extra`. */
const textFields: ReadonlyMap<string, string> = new Map([
  ["text/plain", "text"],
  ["text/html", "html"],
  ["text/markdown", "markdown"],
  ["image/svg+xml", "svg"],
  ["image/png", "png"],
  ["image/jpeg", "jpeg"],
  ["application/pdf", "pdf"],
  ["text/latex", "latex"],
  ["application/javascript", "javascript"],
]);
const valueFields: ReadonlyMap<string, string> = new Map([
  ["application/json", "json"],
  ["e2b/data", "data"],
  ["e2b/chart", "chart"],
]);

const text = z.string();
const messageSchema = z.union([
  z.object({ error: z.object({ name: text, value: text, traceback: text }) }),
  z.object({
    data: z.record(z.string(), z.unknown()),
    main: z.boolean().optional(),
    update: z.boolean().optional(),
  }),
]);

/** Turns what an interpreter reports of one cell into the lines that clients read, within limits. */
export class CellLines {
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  #results = 0;
  #characters = 0;
  #isFull = false;

  /** The lines for a report. */
  *of(event: CellEvent): Generator<string, void, void> {
    if (event.kind === "stdout" || event.kind === "stderr") {
      yield* this.#output(event.kind, this.#decoders[event.kind].decode(event.bytes, { stream: true }));
    } else if (event.kind === "leftOut") yield outputLine("stderr", `A result was left out: ${event.reason}\n`);
    else if (event.kind === "message") yield* this.#message(event.message);
  }

  /** The lines for bytes that were not the end of a character. */
  *end(): Generator<string, void, void> {
    yield* this.#output("stdout", this.#decoders.stdout.decode());
    yield* this.#output("stderr", this.#decoders.stderr.decode());
  }

  *#output(kind: "stdout" | "stderr", said: string): Generator<string, void, void> {
    if (said !== "") yield outputLine(kind, said);
  }

  *#message(given: unknown): Generator<string, void, void> {
    const message = messageSchema.safeParse(given);
    // Such as a request to clear the output, which clients do not know.
    if (!message.success) return;
    if ("error" in message.data) {
      yield line({ type: "error", ...message.data.error });
      return;
    }
    // Like E2B, clients see what is displayed first, not how it changes.
    if (message.data.update === true) return;
    const found = line(resultOf(message.data.data, message.data.main === true));
    this.#results += 1;
    this.#characters += found.length;
    if (this.#results <= mostResults && this.#characters <= mostCharacters) yield found;
    else if (!this.#isFull) {
      this.#isFull = true;
      const most = `${mostResults} results, ${mostCharacters / 2 ** 20} MiB in total`;
      yield outputLine("stderr", `An execution may show at most ${most}; the rest is left out.\n`);
    }
  }
}

/** A line on an output of the code. */
export function outputLine(kind: "stdout" | "stderr", said: string): string {
  return line({ type: kind, text: said, timestamp: new Date().toISOString() });
}

/** A line of JSON. Clients decode each piece that arrives by itself, so no character may have more than one byte. */
export function line(message: JsonObject): string {
  const json = JSON.stringify(message);
  return `${json.replaceAll(/[\u007f-\uffff]/g, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`)}\n`;
}

function resultOf(bundle: Readonly<Record<string, unknown>>, isMain: boolean): JsonObject {
  const result: Record<string, JsonValue> = { type: "result", is_main_result: isMain };
  const extra: Record<string, JsonValue> = {};
  for (const [type, content] of Object.entries(bundle)) {
    const [textField, valueField] = [textFields.get(type), valueFields.get(type)];
    if (content === null || !isJsonValue(content)) continue;
    if (textField !== undefined && typeof content === "string") {
      result[textField] = textField === "text" ? withoutQuotes(content) : content;
    } else if (valueField === undefined) Object.defineProperty(extra, type, { value: content, enumerable: true });
    else result[valueField] = content;
  }
  return { ...result, extra };
}

/** A string as a value is what it contains. */
function withoutQuotes(said: string): string {
  const isQuoted = said.length > 1 && /^['"]/.test(said) && said.endsWith(said.charAt(0));
  return isQuoted ? said.slice(1, -1) : said;
}
