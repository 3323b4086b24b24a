/** Maximum bytes of one message of a server; the SDK's limit for standard streams. */
const mostMessageBytes = 10_485_760;
/** Maximum number of values in one message: the SDK parses and checks each of them. */
const mostMessageValues = 200_000;
const tooLong = `a message has more than ${mostMessageBytes} bytes`;
const tooMany = `a message has more than ${mostMessageValues} values`;

const [lineFeed, carriageReturn, quote, backslash] = [10, 13, 34, 92];
/** The bytes before each value of a list or an object: a comma, and opening brackets. */
const valueMarks: ReadonlySet<number> = new Set([44, 91, 123]);

/** Measures JSON messages that arrive byte by byte, before they are parsed. */
export class MessageMeter {
  #size = 0;
  #values = 0;
  #isString = false;
  #isEscaped = false;

  add(byte: number): void {
    this.#size += 1;
    // No string of JSON contains the end of a line, so a quote in a comment of an event stream begins none.
    if (byte === lineFeed || byte === carriageReturn) this.#isString = this.#isEscaped = false;
    else if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === quote) this.#isString = !this.#isString;
    else if (this.#isString) this.#isEscaped = byte === backslash;
    else if (valueMarks.has(byte)) this.#values += 1;
  }

  /** The next byte begins another message, unless the one before it was too much. */
  next(): void {
    if (this.excess !== undefined) return;
    this.#size = 0;
    this.#values = 0;
  }

  /** Why the message cannot be read. */
  get excess(): RangeError | undefined {
    if (this.#size > mostMessageBytes) return new RangeError(tooLong);
    return this.#values > mostMessageValues ? new RangeError(tooMany) : undefined;
  }
}
