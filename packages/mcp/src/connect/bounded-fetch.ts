/** Maximum bytes of one message of a server; the SDK's limit for standard output. */
const mostMessageBytes = 10_485_760;
/** Maximum number of values in one message: the SDK parses and checks each of them. */
const mostMessageValues = 200_000;
const tooLong = `a message has more than ${mostMessageBytes} bytes`;
const tooMany = `a message has more than ${mostMessageValues} values`;

const [lineFeed, carriageReturn, quote, backslash] = [10, 13, 34, 92];
/** The bytes before each value of a list or an object: a comma, and opening brackets. */
const valueMarks: ReadonlySet<number> = new Set([44, 91, 123]);

/** `fetch` for a server that may send endlessly: fails when a response, or an event of a stream, exceeds the limit. */
export async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const isStream = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") === true;
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(limited(isStream)), { status, statusText, headers });
}

/** @param isStream - apply the limit to each event, which ends with an empty line. */
function limited(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  let isEmptyLine = true;
  const values = new ValueCount();
  return new TransformStream({
    transform(chunk, controller) {
      for (const byte of chunk) {
        size += 1;
        values.add(byte);
        if (!isStream) continue;
        if (byte === lineFeed && isEmptyLine) {
          size = 0;
          values.reset();
        }
        if (byte !== carriageReturn) isEmptyLine = byte === lineFeed;
      }
      if (size > mostMessageBytes) controller.error(new RangeError(tooLong));
      else if (values.count > mostMessageValues) controller.error(new RangeError(tooMany));
      else controller.enqueue(chunk);
    },
  });
}

/** Counts the values of JSON that arrives byte by byte. */
class ValueCount {
  count = 0;
  #isString = false;
  #isEscaped = false;

  add(byte: number): void {
    // No string of JSON contains the end of a line, so a quote in a comment of an event stream begins none.
    if (byte === lineFeed || byte === carriageReturn) this.#isString = this.#isEscaped = false;
    else if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === quote) this.#isString = !this.#isString;
    else if (this.#isString) this.#isEscaped = byte === backslash;
    else if (valueMarks.has(byte)) this.count += 1;
  }

  reset(): void {
    this.count = 0;
  }
}
