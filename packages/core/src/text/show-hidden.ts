/**
 * Makes characters visible that could hide part of a text or disguise it: escape sequences, direction marks, zero-width
 * characters. Newlines and tabs stay.
 *
 * @param write - returns the replacement for one such character. Default: its code point, `\u{1b}`.
 */
export function showHidden(text: string, write: (character: string) => string = asNumber): string {
  return text.replaceAll(hidingCharacters, write);
}

function asNumber(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`;
}

// Controls except tab and newline, line separators, direction marks, zero-width characters that join no letters, blank letters.
const hidingCharacters =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u{34f}\u061c\u115f\u1160\u{17b4}\u{17b5}\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e01ef}]/gu;
