/** A word that a POSIX shell takes as it is. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * Text as one line, from which `printf %b` makes the text again. A shell reads a line from its standard input byte by
 * byte, so what comes after it is left for the programs that the text starts.
 */
export function asLine(text: string): string {
  return `${text.replaceAll("\\", String.raw`\0134`).replaceAll("\n", String.raw`\0012`)}\n`;
}
