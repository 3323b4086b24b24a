import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";
import { fromJson } from "./from-json.ts";

/**
 * Reads what `eventStreamResponse` sends, in a browser or in Node: yields each event through `fromJson`, and throws the
 * error that ended the stream on the server. Leaving the loop early closes the connection, which ends what is running.
 *
 * @throws the server's error; `BackendUnavailableError` if the response is not a stream of events.
 *
 * @example
 * for await (const event of readEventStream(await fetch("/run", { method: "POST", body }))) show(event);
 */
export async function* readEventStream(response: Response): AsyncGenerator<object, void, void> {
  const type = response.headers.get("content-type") ?? "";
  if (response.body === null || !type.startsWith("text/event-stream")) throw await refusal(response);
  for await (const data of dataOf(response.body)) {
    const item: unknown = fromJson(JSON.parse(data));
    if (item instanceof Error) throw item;
    if (typeof item === "object" && item !== null) yield item;
  }
}

async function* dataOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  // The parts of an incomplete event, joined only once however many there are.
  let parts: string[] = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const [first = "", ...others] = decoder.decode(value, { stream: true }).split("\n");
      parts.push(first);
      for (const next of others) {
        const line = parts.join("");
        parts = [next];
        if (line.startsWith("data: ")) yield line.slice("data: ".length);
      }
    }
  } finally {
    await reader.cancel();
  }
}

async function refusal(response: Response): Promise<Error> {
  const text = await response.text();
  const answer = parsed(text);
  if (answer instanceof Error) return answer;
  return new BackendUnavailableError(`The server answered with status ${response.status}: ${text.slice(0, 1000)}`, {
    remedy: "Check the address and the server's log.",
  });
}

function parsed(text: string): unknown {
  try {
    return fromJson(JSON.parse(text));
  } catch {
    return undefined;
  }
}
