/**
 * Makes characters visible that could hide part of a text or disguise it: escape sequences, direction marks, and
 * whatever is drawn as nothing. That includes characters that join letters or choose the form of an emoji: long runs of
 * them can carry a message. Newlines and tabs stay.
 *
 * @param write - returns the replacement for one such character. Default: its code point, `\u{1b}`.
 */
export function showHidden(text: string, write: (character: string) => string = asNumber): string {
  return text.replaceAll(hidingCharacters, write);
}

function asNumber(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`;
}

// Controls except tab and newline, line separators, direction marks, everything that is drawn as nothing (zero-width
// characters, variation selectors, tags, filler letters), and letters that look like a space.
const hidingCharacters =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u2800\ufff9-\ufffb\u{1d159}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/gu;
