import { terminalLines } from "../text/terminal-lines.ts";
import type { CodeResult } from "./code-result.ts";
import { describeCodeResult } from "./describe-code-result.ts";
import { displayImage, type DisplayImage } from "./display-image.ts";

/** Limits on how much of a result a model receives. */
export interface ModelOutputLimits {
  /** Characters of output; longer output keeps its head and tail. Default: 30,000. */
  readonly maxOutputCharacters?: number | undefined;
  /** Number of images; the last ones are kept. Use 0 for none. Default: 4. */
  readonly maxImages?: number | undefined;
  /** Maximum size of an image in bytes; larger ones are left out. Default: 3,750,000, which is 5 MB in base64. */
  readonly maxImageBytes?: number | undefined;
}

/** A result in the form that a model receives. */
export interface ModelOutput {
  /** The result in words, including the output and a note about what was left out. */
  readonly text: string;
  /** The output alone, as a terminal would show it. */
  readonly output: string;
  /** True if the executor or these limits cut the output. */
  readonly truncated: boolean;
  readonly images: readonly DisplayImage[];
}

/**
 * Trims a result to what a model should receive. Its output is what a terminal would show at the end: of a progress bar
 * only the last state, and no escape sequences.
 *
 * @param blockCount - the number of blocks in the call, whether or not all of them ran.
 */
export function codeResultForModel(
  result: CodeResult,
  blockCount: number,
  { maxOutputCharacters = 30_000, maxImages = 4, maxImageBytes = 3_750_000 }: ModelOutputLimits = {},
): ModelOutput {
  const shown = terminalLines(result.output);
  const output = shortenMiddle(shown, maxOutputCharacters);
  const truncated = result.truncated || output !== shown;
  const found = result.displays.flatMap((display) => displayImage(display) ?? []);
  const small = found.filter(({ bytes }) => bytes.byteLength <= maxImageBytes);
  const images = maxImages === 0 ? [] : small.slice(-maxImages);
  const text = describeCodeResult({ ...result, output, truncated }, blockCount);
  const leftOut = found.length - images.length;
  return { text: leftOut === 0 ? text : `${text.trimEnd()}\n\n${imagesLeftOut(leftOut)}`, output, truncated, images };
}

function imagesLeftOut(count: number): string {
  return count === 1
    ? "1 image was created that is not shown here."
    : `${count} images were created that are not shown here.`;
}

/** Returns the head and tail of a text longer than `limit` characters, with a line between them that marks the cut. */
export function shortenMiddle(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  // Drop half a surrogate pair at the cut.
  const head = text.slice(0, half).replace(/[\uD800-\uDBFF]$/, "");
  const tail = half === 0 ? "" : text.slice(-half).replace(/^[\uDC00-\uDFFF]/, "");
  return `${head}\n[... ${text.length - head.length - tail.length} characters left out ...]\n${tail}`;
}
