/**
 * Why hosts may read a path in several ways, as a sentence's end after its name; `undefined` if all read it as it is
 * written. A rule that allows what a path says must not let through what a host makes of it: `/public/..%2fadmin`.
 *
 * @param path - of a request, without its query.
 */
export function unclearPath(path: string): string | undefined {
  if (!path.startsWith("/")) return 'does not begin with "/"';
  if (!/^[\x21-\x7e]*$/.test(path)) return "has characters that must be encoded";
  if (/[\\#?]/.test(path)) return "has a backslash, `#` or `?`";
  if (/%(?![\da-f]{2})/i.test(path)) return "has a `%` that does not begin an encoded character";
  // Encoded again, a `%` may become any of these at a host that decodes twice.
  if (/%(?:2f|5c|25|23|3f|3b|[01][\da-f]|7f)/i.test(path)) {
    return "has an encoded character that hosts treat differently";
  }
  // Some hosts read `%c0%ae` as a dot.
  if (!isUtf8(path)) return "has encoded characters that are not UTF-8";
  if (path.includes("//")) return "has an empty part";
  const parts = path.split("/").map((part) => part.replaceAll(/%2e/gi, ".").replace(/;.*/, ""));
  if (parts.some((part) => part === "." || part === "..")) return "has a part that is `.` or `..`";
  return undefined;
}

function isUtf8(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/**
 * True if a path matches a pattern, part by part: `*` is any text within a part, and `**` any number of parts, also
 * none. So `/a/**` matches `/a`, `/a/` and `/a/b/c`. Upper and lower case differ, and so do other encodings of a character.
 */
export function matchesPath(pattern: string, path: string): boolean {
  return matchesList(pattern.split("/"), path.split("/"), {
    isStar: (part) => part === "**",
    matches: (part, text) =>
      matchesList(Array.from(part), Array.from(text), { isStar: (each) => each === "*", matches: Object.is }),
  });
}

interface Wildcard {
  readonly isStar: (item: string) => boolean;
  readonly matches: (item: string, text: string) => boolean;
}

/** Goes back to the last star only, so that its time is at most the product of both lengths, whatever code sends. */
function matchesList(items: readonly string[], texts: readonly string[], { isStar, matches }: Wildcard): boolean {
  let [item, text, star, afterStar] = [0, 0, -1, 0];
  while (text < texts.length) {
    const current = items[item];
    if (current !== undefined && isStar(current)) {
      [star, afterStar] = [item, text];
      item += 1;
    } else if (current !== undefined && matches(current, texts[text] ?? "")) {
      item += 1;
      text += 1;
    } else if (star >= 0) {
      afterStar += 1;
      [item, text] = [star + 1, afterStar];
    } else return false;
  }
  return items.slice(item).every(isStar);
}
