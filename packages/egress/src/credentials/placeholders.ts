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
  readonly #hidden: Replacement[];

  constructor(read: readonly ReadPlaceholder[]) {
    this.#read = read;
    this.#hidden = read
      .filter(({ value }) => value.length >= shortestHidden)
      .flatMap(({ placeholder, value }) =>
        answerKinds.map((kind) => ({ parts: partsOf(value, kind), by: Buffer.from(placeholder) })),
      );
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
    const replacer = new TextReplacer(this.#hidden.toSorted((one, other) => other.parts.length - one.parts.length));
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
    if (sent.length >= shortestHidden) {
      this.#hidden.push({ parts: partsOf(sent, "plain"), by: Buffer.from(encoded) });
    }
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
  return { parts: partsOf(placeholder, kind), by: Buffer.from(by) };
}

/** How a text may be written: what a host repeats, it may also escape for a page. */
type Spelling = TextKind | "html";

const answerKinds: readonly Spelling[] = ["plain", "form", "json", "html"];
const inHtml = new Map(Object.entries({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" }));
const inJsonAlso = new Map(Object.entries({ "/": "\\/", '"': '\\"', "\\": "\\\\" }));
/** By kind and character: they are needed for each request, and there are few. */
const known = new Map<string, readonly Buffer[]>();

function partsOf(text: string, kind: Spelling): Replacement["parts"] {
  return Array.from(text, (character) => {
    const key = `${kind} ${character}`;
    const spelled = known.get(key) ?? [...new Set(spellings(character, kind))].map((each) => Buffer.from(each));
    known.set(key, spelled);
    return spelled;
  });
}

/** All spellings of an ASCII character, which frameworks choose differently; none of them begins with another one. */
function spellings(character: string, kind: Spelling): string[] {
  if (kind === "plain") return [character];
  const code = character.charCodeAt(0);
  const lower = code.toString(16).padStart(2, "0");
  const hex = [lower, lower.toUpperCase()];
  if (kind === "form") {
    return [...own(character, "%"), ...(character === " " ? ["+"] : []), ...hex.map((each) => `%${each}`)];
  }
  if (kind === "json") {
    return [...own(character, '"\\'), ...listed(inJsonAlso.get(character)), ...hex.map((each) => `\\u00${each}`)];
  }
  const numbers = [`#${code}`, `#0${code}`, ...hex.flatMap((each) => [`#x${each}`, `#X${each}`, `#x00${each}`])];
  return [...own(character, "&"), ...listed(inHtml.get(character)), ...numbers.map((each) => `&${each};`)];
}

/** The character itself, unless it begins other spellings, or must not stand there. */
function own(character: string, others: string): string[] {
  return others.includes(character) ? [] : [character];
}

function listed(text: string | undefined): string[] {
  return text === undefined ? [] : [text];
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
