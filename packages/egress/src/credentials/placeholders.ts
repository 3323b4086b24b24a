import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { PlaceholderPart } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { Refusal } from "../destination/refusal.ts";
import type { ChangedAnswer, ChangedRequest } from "../http/forward-request.ts";
import { type HeaderLines, valuesOf } from "../http/header-lines.ts";
import { ReplacingStream, type Replacement, TextReplacer } from "./replace-text.ts";
import { type TextKind, textKind } from "./text-kind.ts";

/** A placeholder whose value has been read. */
export interface ReadPlaceholder {
  readonly placeholder: string;
  readonly value: string;
  readonly parts: readonly PlaceholderPart[];
}

/** Maximum bytes of a body that is read before it is sent, so that its new length is known: many servers read no other. */
const wholeBytes = 65_536;
/** Maximum characters of a request's header with its values. */
const maxHeaderLength = 65_536;
/** Shorter values occur by chance: what a host answers would be spoiled. */
const shortestHidden = 8;

/** Puts values into one request to the host that they are for, and takes them out of its answer. */
export class Placeholders {
  readonly #read: readonly ReadPlaceholder[];
  /** Texts that the host got, and may send back, with what the program sent or knows in their place. */
  readonly #hidden = new Map<string, string>();

  constructor(read: readonly ReadPlaceholder[]) {
    this.#read = read;
    for (const { placeholder, value } of read) {
      if (value.length < shortestHidden) continue;
      const form = inQuery(value).replaceAll("%20", "+");
      const encoded = [encodeURIComponent(value), inQuery(value), form];
      const lower = encoded.map((text) => text.replaceAll(/%../g, (hex) => hex.toLowerCase()));
      for (const text of [value, inJson(value), ...encoded, ...lower]) this.#hidden.set(text, placeholder);
    }
  }

  /**
   * A request with the values.
   *
   * @param signal - ends the wait for a short body.
   * @throws Refusal if it is too large for a host with them.
   */
  async request(request: IncomingMessage, target: string, signal: AbortSignal): Promise<ChangedRequest> {
    const path = this.#path(target);
    const { headers, body } = await this.#body(request, this.#headers(request.rawHeaders), signal);
    if (path.length + headers.join("").length > maxHeaderLength) {
      throw new Refusal(431, `the request's header is longer than ${maxHeaderLength} bytes with its credentials`);
    }
    // What the host compresses, the values could not be taken out of.
    const kept = headers.filter((_, index) => !isNamed(headers, index, "accept-encoding"));
    return { path, headers: [...kept, "Accept-Encoding", "identity"], body };
  }

  /** An answer without the values, where it is text. */
  answer(answer: IncomingMessage, hasBody: boolean): ChangedAnswer {
    // The longest first: one may begin with another.
    const texts = [...this.#hidden].toSorted(([one], [other]) => other.length - one.length);
    const replacer = new TextReplacer(
      texts.map(([text, by]) => ({ parts: [[Buffer.from(text)]], by: Buffer.from(by) })),
    );
    const changesBody = hasBody && textKind(answer.rawHeaders) !== undefined;
    const lines = answer.rawHeaders.map((text, index) => (index % 2 === 0 ? text : replacer.text(text)));
    return {
      statusMessage: replacer.text(answer.statusMessage ?? ""),
      headers: changesBody ? lines.filter((_, index) => !isNamed(lines, index, "content-length")) : lines,
      through: changesBody ? [new ReplacingStream(replacer)] : [],
    };
  }

  #path(target: string): string {
    const query = target.indexOf("?");
    if (query < 0) return target;
    return `${target.slice(0, query)}${this.#replacer("query", "form").text(target.slice(query))}`;
  }

  #headers(lines: HeaderLines): string[] {
    const replacer = this.#replacer("header", "plain");
    return lines.map((text, index) => {
      if (index % 2 === 0) return text;
      const isAuthorization = lines[index - 1]?.toLowerCase() === "authorization";
      return (isAuthorization ? this.#basic(text, replacer) : undefined) ?? replacer.text(text);
    });
  }

  /** The value of an `Authorization` header, whose Basic form hides the placeholder; `undefined` if it is something else. */
  #basic(text: string, replacer: TextReplacer): string | undefined {
    const [, scheme = "", encoded = ""] = /^(basic +)([\w+/=-]+)\s*$/i.exec(text) ?? [];
    if (encoded === "") return undefined;
    const plain = Buffer.from(encoded, "base64");
    const replaced = replacer.whole(plain);
    if (replaced === plain) return text;
    const sent = replaced.toString("base64");
    if (sent.length >= shortestHidden) this.#hidden.set(sent, encoded);
    return `${scheme}${sent}`;
  }

  async #body(
    request: IncomingMessage,
    headers: readonly string[],
    signal: AbortSignal,
  ): Promise<{ readonly headers: readonly string[]; readonly body: ChangedRequest["body"] }> {
    const kind = textKind(request.rawHeaders);
    const [given] = valuesOf(headers, "content-length");
    const chunked = valuesOf(headers, "transfer-encoding").length > 0;
    const unchanged = !this.#read.some(({ parts }) => parts.includes("body"));
    if (unchanged || kind === undefined || (!chunked && Number(given ?? 0) === 0)) {
      return { headers, body: () => request };
    }
    const replacer = this.#replacer("body", kind);
    const rest = headers.filter((_, index) => !isNamed(headers, index, "content-length"));
    if (chunked || Number(given) > wholeBytes) {
      const sent = chunked ? rest : [...rest, "Transfer-Encoding", "chunked"];
      return { headers: sent, body: () => request.pipe(new ReplacingStream(replacer)) };
    }
    const { pieces } = replacer.replace(await readWhole(request, signal), true);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    // Not one piece: a small body may name a long value thousands of times.
    return { headers: [...rest, "Content-Length", String(length)], body: () => Readable.from(pieces) };
  }

  #replacer(part: PlaceholderPart, kind: TextKind): TextReplacer {
    return new TextReplacer(
      this.#read.filter(({ parts }) => parts.includes(part)).map((each) => replacement(each, kind)),
    );
  }
}

/** True for the name and for the value of a header. @param name - in lower case. */
function isNamed(lines: HeaderLines, index: number, name: string): boolean {
  return lines[index - (index % 2)]?.toLowerCase() === name;
}

function replacement({ placeholder, value }: ReadPlaceholder, kind: TextKind): Replacement {
  const by = { plain: value, form: inQuery(value), json: inJson(value) }[kind];
  return {
    parts: Array.from(placeholder, (character) => spellings(character, kind).map((each) => Buffer.from(each))),
    by: Buffer.from(by),
  };
}

function spellings(character: string, kind: TextKind): string[] {
  if (kind === "plain") return [character];
  const hex = character.charCodeAt(0).toString(16).padStart(2, "0");
  const both = [hex, hex.toUpperCase()];
  if (kind === "form") return [character, ...both.map((each) => `%${each}`)];
  return [character, ...both.map((each) => `\\u00${each}`), ...(character === "/" ? ["\\/"] : [])];
}

function inQuery(value: string): string {
  return encodeURIComponent(value).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function inJson(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

/** Reads a body of a known, small length. Ends the connection of a client that does not send it in time. */
async function readWhole(request: IncomingMessage, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const read = async (): Promise<void> => {
    for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk);
  };
  try {
    await untilAborted(read(), signal);
  } catch (error) {
    request.destroy();
    throw error;
  }
  return Buffer.concat(chunks);
}
