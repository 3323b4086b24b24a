import ansiRegex from "ansi-regex";

/**
 * Removes characters that could control a terminal. Text from a model or a program may contain control sequences that
 * recolour, erase or overwrite the screen, set the window title or the clipboard, or reverse the order of letters.
 * Newlines and tabs stay; a lone carriage return, which would overwrite the line, becomes a newline.
 */
export function sanitizeTerminalText(text: string): string {
  return text.replaceAll(ansiRegex(), "").replaceAll(/\r\n?/g, "\n").replaceAll(controlCharacters, "");
}

// C0 except tab and newline, DEL, C1, and direction marks.
// oxlint-disable-next-line no-control-regex
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
