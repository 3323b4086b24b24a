/** Alternating names and values, in Node's format; repeated headers are kept. */
export type HeaderLines = readonly string[];

/** Headers about the connection of a message, not about the message. */
const hopByHop = new Set([
  "connection",
  "expect",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The headers to pass on: all except those of the connection, those that `Connection` names, and those in `drop`. */
export function forwarded(lines: HeaderLines, drop: ReadonlySet<string> = new Set()): string[] {
  const named = new Set(
    valuesOf(lines, "connection").flatMap((value) => value.split(",").map((each) => each.trim().toLowerCase())),
  );
  // The body's length stays true, whatever `Connection` says.
  named.delete("content-length");
  const kept: string[] = [];
  for (let index = 0; index + 1 < lines.length; index += 2) {
    const [name = "", value = ""] = lines.slice(index, index + 2);
    const key = name.toLowerCase();
    if (!hopByHop.has(key) && !named.has(key) && !drop.has(key)) kept.push(name, value);
  }
  return kept;
}

/** All values of one header, given in lower case. */
export function valuesOf(lines: HeaderLines, wanted: string): string[] {
  return lines.filter((_, index) => index % 2 === 1 && lines[index - 1]?.toLowerCase() === wanted);
}
