/**
 * Removes the thoughts that some models and servers write into the text itself, `<think>…</think>` at its beginning:
 * code, names and words in them are drafts. A thought that never ends is all there is.
 */
export function withoutThoughts(text: string): string {
  const opening = /^\s*<(think|thinking|thought|reasoning)>/i.exec(text);
  // Servers that put the opening tag into the prompt leave only the closing one, on a line of its own.
  if (opening === null) return text.replace(/^(?:(?!```)[^])*?\n<\/think>[ \t]*(?:\n|$)/, "");
  const closing = `</${opening[1]?.toLowerCase() ?? ""}>`;
  const end = text.toLowerCase().indexOf(closing);
  return end < 0 ? "" : text.slice(end + closing.length);
}
