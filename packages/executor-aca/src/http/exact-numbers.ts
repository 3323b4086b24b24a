/** A private-use character, which marks a number as text. */
const mark = "\uE000";
const number = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const marked = new RegExp(`"${mark}(${number.source})"`, "g");

/**
 * Turns the numbers of a JSON text that JavaScript would change, such as 2⁶⁴ and 1.0, into texts with a mark, so that
 * `withoutMarks` can show them as they were.
 */
export function markNumbers(json: string): string {
  const pieces: string[] = [];
  let taken = 0;
  for (let at = 0; at < json.length;) {
    const code = json.charCodeAt(at);
    if (code === quote) {
      at = endOfString(json, at);
      continue;
    }
    number.lastIndex = at;
    const [digits] = (code === minus || (code >= zero && code <= nine) ? number.exec(json) : undefined) ?? [];
    if (digits !== undefined && String(Number(digits)) !== digits) {
      pieces.push(json.slice(taken, at), `"${mark}${digits}"`);
      taken = at + digits.length;
    }
    at += digits?.length ?? 1;
  }
  return taken === 0 ? json : [...pieces, json.slice(taken)].join("");
}

/** A value as JSON, or as it is if it is a text, with its marked numbers as they were. */
export function withoutMarks(value: unknown): string {
  if (typeof value === "string") return value.startsWith(mark) ? value.slice(1) : value;
  try {
    return JSON.stringify(value).replaceAll(marked, "$1");
  } catch {
    return "(a value that is nested too deeply to show)";
  }
}

const [quote, minus, zero, nine] = [34, 45, 48, 57];

/** Where a string ends that begins at `start`. */
function endOfString(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json.charAt(end - 1 - slashes) === "\\") slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return json.length;
}
