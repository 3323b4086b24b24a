import type { Dispatcher } from "undici";
import { z } from "zod";
import { ServiceError } from "./service-error.ts";

const errorBody = z.object({
  error: z.object({ code: z.string().nullish(), message: z.string().nullish() }),
});

/** The longest text of an answer that is read and shown. */
const longestText = 4000;

/**
 * The error that an answer is.
 *
 * @param token - left out of the texts, should the service repeat it.
 */
export async function readError(response: Dispatcher.ResponseData, token: string): Promise<ServiceError> {
  const text = await readStart(response.body);
  const { code, message } = parse(text);
  const challenge = header(response, "www-authenticate") ?? "";
  const hidden = (each: string): string => each.replaceAll(token, "[token]").slice(0, longestText);
  return new ServiceError(response.statusCode, {
    code: hidden(code),
    reason: hidden([message, challenge].filter((each) => each !== "").join(" ")),
    retryAfterMs: retryAfter(header(response, "retry-after")),
  });
}

/** A header's value; the first if it came several times. */
export function header({ headers }: Dispatcher.ResponseData, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

async function readStart(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of body) {
      pieces.push(piece);
      length += piece.length;
      if (length > 4 * longestText) break;
    }
  } catch {
    // The status says enough.
  }
  return Buffer.concat(pieces).toString("utf8");
}

function parse(text: string): { code: string; message: string } {
  try {
    const { error } = errorBody.parse(JSON.parse(text));
    return { code: error.code ?? "", message: error.message ?? "" };
  } catch {
    return { code: "", message: text.trim() };
  }
}

function retryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const milliseconds = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds);
}
