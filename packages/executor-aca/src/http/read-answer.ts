import {
  BackendUnavailableError,
  ByteQueue,
  measureJson,
  parseJson as parseJsonText,
  sanitizeTerminalText,
} from "@fenced/core";
import type { Dispatcher } from "undici";
import { z } from "zod";
import { markNumbers } from "./exact-numbers.ts";
import { ConnectionError, ServiceError } from "./service-error.ts";

/** The longest answer to read into memory, in bytes: output, a picture, a page of a list. */
const longestAnswer = 64 * 1024 * 1024;
/** The longest text from an answer to show in an error. */
const longestText = 4000;
/** Milliseconds from the beginning of an answer to its end. */
const patienceMs = 120_000;
/** The longest pause that the service can ask for, in milliseconds. */
const longestPauseMs = 3_600_000;

/** Answers with the value of a block, in both generations of the API. */
const hasValue = /"(?:executionResult|result)"/;

const errorBody = z.object({
  error: z.object({ code: z.string().nullish(), message: z.string().nullish() }),
});

/**
 * The body of an answer, checked.
 *
 * @param token - left out of errors, in case the answer repeats it.
 * @throws BackendUnavailableError if it does not match the schema, ConnectionError if it is incomplete.
 */
export async function readJson<T>(response: Dispatcher.ResponseData, schema: z.ZodType<T>, token: string): Promise<T> {
  const { text, isCut } = await readText(response, longestAnswer).catch((error: unknown) => {
    throw new ConnectionError(error);
  });
  const parsed = isCut ? undefined : schema.safeParse(parseJson(text, markNumbersOfValue));
  if (parsed?.success === true) return parsed.data;
  const start = shown(text.slice(0, 4 * longestText), token, true).slice(0, 200);
  const problem = isCut ? `is longer than ${longestAnswer} bytes` : "does not match its API";
  throw new BackendUnavailableError(`The session pool's answer ${problem}: ${start}`, {
    remedy: "Check `poolManagementEndpoint` and `apiVersion`.",
    option: "poolManagementEndpoint",
    cause: parsed?.error,
  });
}

/** Turns an answer into an error. @param token - left out of the texts. */
export async function readError(response: Dispatcher.ResponseData, token: string): Promise<ServiceError> {
  // The status says enough if the rest does not arrive.
  const { text, isCut } = await readText(response, 4 * longestText).catch(() => ({ text: "", isCut: false }));
  const body = errorBody.safeParse(parseJson(text)).data?.error ?? { code: "", message: text.trim() };
  const challenge = header(response, "www-authenticate") ?? "";
  const message = shown(body.message ?? "", token, isCut);
  return new ServiceError(response.statusCode, {
    code: shown(body.code ?? "", token),
    reason: [message, shown(challenge, token)].filter((each) => each !== "").join(" "),
    retryAfterMs: retryAfter(header(response, "retry-after")),
  });
}

/** A header's value; the first one if it is repeated. */
function header({ headers }: Dispatcher.ResponseData, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Reads at most `limit` bytes, for at most `patienceMs`. */
async function readText({ body }: Dispatcher.ResponseData, limit: number): Promise<{ text: string; isCut: boolean }> {
  const bytes = new ByteQueue();
  const timer = setTimeout(() => body.destroy(new Error("The answer does not end")), patienceMs);
  try {
    for await (const piece of body as AsyncIterable<Uint8Array>) {
      bytes.add(piece);
      if (bytes.length > limit) break;
    }
  } finally {
    clearTimeout(timer);
  }
  const isCut = bytes.length > limit;
  return { text: new TextDecoder().decode(bytes.take()), isCut };
}

function parseJson(text: string, prepare: (text: string) => string = (unchanged) => unchanged): unknown {
  try {
    return parseJsonText(prepare(text));
  } catch {
    return undefined;
  }
}

/** @throws JsonLimitError if it has too many values: each number that is marked takes more memory than its text. */
function markNumbersOfValue(text: string): string {
  if (!hasValue.test(text)) return text;
  measureJson(text);
  return markNumbers(text);
}

/** The service's text as errors may show it. @param isCut - whether it may end within the token. */
function shown(text: string, token: string, isCut = false): string {
  const hidden = text.replaceAll(token, "[token]");
  const whole = isCut ? hidden.slice(0, Math.max(0, hidden.length - token.length)) : hidden;
  return sanitizeTerminalText(whole.slice(0, longestText));
}

function retryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const milliseconds = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.min(Math.max(0, milliseconds), longestPauseMs);
}
