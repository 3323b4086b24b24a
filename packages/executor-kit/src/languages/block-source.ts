/** The text to write into a block's file. Shells take a carriage return for a part of the word before it. */
export function blockSource(language: string, code: string): string {
  return language === "bash" || language === "sh" ? code.replaceAll("\r\n", "\n") : code;
}
