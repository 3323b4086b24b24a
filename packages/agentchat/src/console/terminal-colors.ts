/** SGR codes by part of the chat. */
const codes = { header: "1;36", note: "2", code: "33", output: "32", failure: "31" } as const;

/** A part of the chat with its own look. */
export type Look = keyof typeof codes;

/** Applies a look to text. */
export type Paint = (look: Look | undefined, text: string) => string;

/** Creates a function that colours each line separately, or does nothing. */
export function createPaint(colors: boolean): Paint {
  return (look, text) => {
    if (!colors || look === undefined) return text;
    return text.replaceAll(/[^\n]+/g, (line) => `\u001B[${codes[look]}m${line}\u001B[0m`);
  };
}

/** Whether to colour a stream: true for a terminal unless `NO_COLOR` is set; `FORCE_COLOR` enables colours anywhere. */
export function wantsColors(output: NodeJS.WritableStream): boolean {
  const { NO_COLOR, FORCE_COLOR } = process.env;
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== "") return FORCE_COLOR !== "0";
  return "isTTY" in output && output.isTTY === true;
}
