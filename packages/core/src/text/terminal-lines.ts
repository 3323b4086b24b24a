/** The height of the terminal that is imitated: what programs assume if they cannot ask. Lines above it stay as they are. */
const screenRows = 24;
/** How far to the right of a line's end the cursor can move. */
const farthestColumn = 132;
/** The longest control sequence that may arrive in two texts; of a longer one, only its control characters are removed. */
const longestSequence = 256;
/** Spaces that a text can make a terminal fill in, before and over what it has printed. */
const [mostPadding, mostBlanks] = [100_000, 10_000_000];

// What makes a terminal do something other than print: C0 except tab and newline, DEL, C1.
// oxlint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;

/**
 * Control sequences, and strings that show nothing, such as titles and links (ECMA-48); a string without an end loses
 * only its control characters. Groups: the parameters and the final character of a control sequence.
 */
const sequences =
  // oxlint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)([0-?]*)[ -/]*([@-~])|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u0080-\u009f]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-OQ-WYZ\\`-~]|[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g;

/** The beginning of such a sequence, at the end of a text. */
const unfinished =
  // oxlint-disable-next-line no-control-regex
  /(?:\u001b[ -/]*|(?:\u001b\[|\u009b)[0-?]*[ -/]*|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u0080-\u009f]*\u001b?)$/;

/**
 * What a terminal shows once all of a text has been written to it: the last state of each line, without escape
 * sequences. A progress bar that returns to the beginning of its line a thousand times becomes one line.
 */
export function terminalLines(text: string): string {
  return controls.test(text) ? new Screen().show(text) : text;
}

/** The last characters that a terminal shows of a text that arrives in parts. Its memory does not grow with the text. */
export class TerminalTail {
  readonly #maxCharacters: number;
  #screen: Screen;
  #rest = "";

  /** @param maxCharacters - a longer text is cut to its last characters, after `…`. A line of twice as many loses its beginning. */
  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters;
    this.#screen = new Screen(maxCharacters);
  }

  write(text: string): void {
    const whole = this.#rest + text;
    this.#rest = unfinished.exec(whole.slice(-longestSequence))?.[0] ?? "";
    this.#screen.write(whole.slice(0, whole.length - this.#rest.length));
  }

  /** What is shown now; afterwards, the terminal is empty. */
  take(): string {
    const shown = this.toString();
    this.#screen = new Screen(this.#maxCharacters);
    return shown;
  }

  toString(): string {
    return lastCharacters(this.#screen.text(), this.#maxCharacters);
  }
}

/** The last `count` characters of a text, after `…` if there were more. Never splits a character. */
function lastCharacters(text: string, count: number): string {
  if (text.length <= count) return text;
  return `…${text.slice(text.length - count).replace(/^[\uDC00-\uDFFF]/, "")}`;
}

/** A terminal of limited height, and of unlimited width. Its time and memory grow with the text alone. */
class Screen {
  /** Characters to keep of lines that have left the screen. */
  readonly #keep: number;
  #kept = 0;
  /** Lines that have left the screen. */
  readonly #past: string[] = [];
  readonly #rows = [new Row()];
  #row = 0;
  #column = 0;
  #padding = mostPadding;
  #blanks = mostBlanks;

  constructor(keep = Infinity) {
    this.#keep = keep;
  }

  show(text: string): string {
    this.write(text);
    return this.text();
  }

  write(text: string): void {
    [this.#padding, this.#blanks] = [mostPadding, mostBlanks];
    let from = 0;
    for (const match of text.matchAll(sequences)) {
      this.#print(text, from, match.index);
      from = match.index + match[0].length;
      const [sequence, parameters, final] = match;
      if (final === undefined) this.#control(sequence);
      else this.#move(parameters ?? "", final);
    }
    this.#print(text, from, text.length);
  }

  text(): string {
    // Nothing is left below the cursor where lines have been erased.
    while (this.#rows.length > this.#row + 1 && String(this.#rows.at(-1)) === "") this.#rows.pop();
    return [...this.#past, ...this.#rows.map(String)].join("\n");
  }

  #print(text: string, from: number, to: number): void {
    if (from === to) return;
    const row = this.#current();
    const missing = Math.min(Math.max(0, this.#column - row.length), this.#padding);
    this.#padding -= missing;
    row.pad(missing);
    this.#column = Math.min(this.#column, row.length);
    row.write(this.#column, text, from, to);
    this.#column += to - from;
    if (row.length > 2 * this.#keep) this.#column -= row.forget(row.length - this.#keep);
  }

  #control(sequence: string): void {
    if (sequence === "\n" || sequence === "\u000b" || sequence === "\u000c" || sequence === "\u0085") this.#newLine();
    else if (sequence === "\r") this.#column = 0;
    else if (sequence === "\b") this.#column = Math.max(0, this.#column - 1);
    else if (sequence === "\u001bM") this.#up(1);
    else if (sequence === "\u001bc") {
      this.#erase(0, Infinity);
      this.#to(0);
      this.#column = 0;
    }
  }

  #newLine(): void {
    this.#row += 1;
    this.#column = 0;
    if (this.#row < this.#rows.length) return;
    this.#rows.push(new Row());
    if (this.#rows.length <= screenRows) return;
    this.#leave(String(this.#rows.shift()));
    this.#row -= 1;
  }

  #leave(line: string): void {
    this.#past.push(line);
    this.#kept += line.length + 1;
    // Seldom, because taking from the front of a list takes time.
    if (this.#kept <= 2 * this.#keep + screenRows) return;
    let first = this.#past.length;
    for (this.#kept = 0; first > 0 && this.#kept <= this.#keep; first -= 1) {
      this.#kept += (this.#past[first - 1]?.length ?? 0) + 1;
    }
    this.#past.splice(0, first);
  }

  /** Moves the cursor or erases, by a CSI sequence; others, such as colours, show nothing. */
  #move(parameters: string, final: string): void {
    const [first, second] = parameters.split(";").map((each) => (/^\d+$/.test(each) ? Number(each) : undefined));
    const count = Math.max(1, first ?? 1);
    if (final === "A" || final === "F") this.#up(count);
    else if (final === "B" || final === "E") this.#to(this.#row + count);
    else if (final === "C" || final === "a") this.#toColumn(this.#column + count);
    else if (final === "D") this.#toColumn(this.#column - count);
    else if (final === "G" || final === "`") this.#toColumn(count - 1);
    else if (final === "d") this.#to(count - 1);
    else if (final === "H" || final === "f") {
      this.#to(count - 1);
      this.#toColumn((second ?? 1) - 1);
    } else if (final === "K") this.#eraseLine(first ?? 0);
    else if (final === "J") this.#eraseScreen(first ?? 0);
    if (final === "E" || final === "F") this.#column = 0;
  }

  #eraseLine(what: number): void {
    if (what === 0) this.#current().cut(this.#column);
    else if (what === 2) this.#current().cut(0);
    else if (what === 1) {
      this.#blanks -= this.#column + 1;
      if (this.#blanks > 0) this.#current().blank(this.#column + 1);
    }
  }

  #eraseScreen(what: number): void {
    if (what === 2) {
      this.#erase(0, Infinity);
      return;
    }
    this.#eraseLine(what);
    if (what === 0) this.#erase(this.#row + 1, Infinity);
    else if (what === 1) this.#erase(0, this.#row);
  }

  #erase(from: number, to: number): void {
    for (const row of this.#rows.slice(from, to)) row.cut(0);
    // Nothing is left below, so nothing is shown below.
    if (to === Infinity) this.#rows.length = Math.min(this.#rows.length, Math.max(from, this.#row + 1));
  }

  #up(count: number): void {
    this.#to(this.#row - count);
  }

  #to(row: number): void {
    this.#row = Math.min(Math.max(0, row), screenRows - 1);
    while (this.#rows.length <= this.#row) this.#rows.push(new Row());
    this.#current().edited = true;
  }

  #toColumn(column: number): void {
    const farthest = Math.max(this.#current().length, farthestColumn);
    this.#column = Math.min(Math.max(0, column), farthest);
    this.#current().edited = true;
  }

  #current(): Row {
    const row = this.#rows[this.#row];
    if (row) return row;
    throw new RangeError("The cursor is not on the screen");
  }
}

/** A line in UTF-16 code units, which can be overwritten in place however long it is. */
class Row {
  length = 0;
  /** Blanks at the end of a line that was edited are left over from what was there. */
  edited = false;
  #units = new Uint16Array(0);

  /** @param column - at most the line's length. */
  write(column: number, text: string, from: number, to: number): void {
    if (column < this.length) this.edited = true;
    const end = column + to - from;
    this.#reserve(end);
    for (let index = from; index < to; index += 1) this.#units[column + index - from] = text.charCodeAt(index);
    this.length = Math.max(this.length, end);
  }

  pad(count: number): void {
    this.#reserve(this.length + count);
    this.#units.fill(space, this.length, this.length + count);
    this.length += count;
  }

  blank(count: number): void {
    this.edited = true;
    this.#units.fill(space, 0, Math.min(count, this.length));
  }

  cut(length: number): void {
    this.edited = true;
    this.length = Math.min(this.length, length);
  }

  /** Removes the first units, and returns how many. */
  forget(count: number): number {
    this.#units.copyWithin(0, count, this.length);
    this.length -= count;
    return count;
  }

  toString(): string {
    const text = decoder.decode(this.#units.subarray(0, this.length));
    return this.edited ? text.trimEnd() : text;
  }

  #reserve(length: number): void {
    if (length <= this.#units.length) return;
    const larger = new Uint16Array(Math.max(length, this.#units.length * 2, 80));
    larger.set(this.#units.subarray(0, this.length));
    this.#units = larger;
  }
}

const space = 0x20;
const decoder = new TextDecoder("utf-16le", { ignoreBOM: true });
