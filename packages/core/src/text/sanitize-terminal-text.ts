/**
 * Removes characters that could control a terminal. Text from a model or a program may contain control sequences that
 * recolour, erase or overwrite the screen, set the window title or the clipboard, or reverse the order of letters.
 * Newlines and tabs stay; a lone carriage return, which would overwrite the line, becomes a newline.
 */
export function sanitizeTerminalText(text: string): string {
  return text.replaceAll(controlSequences, "").replaceAll(/\r\n?/g, "\n").replaceAll(controlCharacters, "");
}

/**
 * CSI sequences, OSC strings without spaces (links), and short escape sequences (ECMA-48). Libraries also remove longer
 * strings, with which a program could hide text from the reader; those lose only their control characters. Browsers have
 * no `stripVTControlCharacters`.
 */
const controlSequences =
  // oxlint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)[^\s\u0007\u001b\u0080-\u009f]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-OQ-WYZ\\`-~]/g;

// C0 except tab and newline, DEL, C1, and direction marks.
// oxlint-disable-next-line no-control-regex
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
