/** What parts of the chat look like; the names are those of the parts, the values are SGR codes. */
const codes = { header: "1;36", note: "2", code: "33", output: "32", failure: "31" } as const;

/** A part of the chat with a look of its own. */
export type Look = keyof typeof codes;

/** Gives text a look. */
export type Paint = (look: Look | undefined, text: string) => string;

/** Makes a function that colours each line by itself, or does nothing. */
export function createPaint(colors: boolean): Paint {
  return (look, text) => {
    if (!colors || look === undefined) return text;
    return text.replaceAll(/[^\n]+/g, (line) => `\u001B[${codes[look]}m${line}\u001B[0m`);
  };
}

/** Whether a stream should get colours: a terminal does, unless `NO_COLOR` is set; `FORCE_COLOR` says yes anywhere. */
export function wantsColors(output: NodeJS.WritableStream): boolean {
  const { NO_COLOR, FORCE_COLOR } = process.env;
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== "") return FORCE_COLOR !== "0";
  return "isTTY" in output && output.isTTY === true;
}
