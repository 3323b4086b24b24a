import type { BlockResult, CodeResult } from "./code-result.ts";
import { describeCodeResult } from "./describe-code-result.ts";
import { displayImage, type DisplayImage } from "./display-image.ts";
import { makeBlockResult, makeCodeResult } from "./make-code-result.ts";

/** How much of a result a model is given. */
export interface ModelOutputLimits {
  /** Characters of output; of more, head and tail are kept. Default: 30,000. */
  readonly maxOutputCharacters?: number;
  /** Images, the last ones that were shown; 0: none. Default: 4. */
  readonly maxImages?: number;
  /** Bytes of one image; a larger one is left out. Default: 3,750,000, which is 5 MB in base64. */
  readonly maxImageBytes?: number;
}

/** A result as a model gets it. */
export interface ModelOutput {
  /** The result in words, with the output, and with what was left out. */
  readonly text: string;
  /** The output alone. */
  readonly output: string;
  /** The output is not whole: the executor or these limits cut it. */
  readonly truncated: boolean;
  readonly images: readonly DisplayImage[];
}

/**
 * A result, cut down to what a model should be given.
 *
 * @param blockCount - how many blocks should have run.
 */
export function codeResultForModel(
  result: CodeResult,
  blockCount: number,
  { maxOutputCharacters = 30_000, maxImages = 4, maxImageBytes = 3_750_000 }: ModelOutputLimits = {},
): ModelOutput {
  const output = shortenMiddle(result.output, maxOutputCharacters);
  const truncated = result.truncated || output !== result.output;
  const found = result.displays.flatMap((display) => displayImage(display) ?? []);
  const small = found.filter(({ bytes }) => bytes.byteLength <= maxImageBytes);
  const images = maxImages === 0 ? [] : small.slice(-maxImages);
  const text = describeCodeResult({ ...result, output, truncated }, blockCount);
  const leftOut = found.length - images.length;
  return { text: leftOut === 0 ? text : `${text.trimEnd()}\n\n${imagesLeftOut(leftOut)}`, output, truncated, images };
}

/**
 * A result whose blocks keep so many characters of output between them, each by its share; of more, head and tail. Everything else
 * stays. For results that are kept, in a chat's state for one.
 */
export function shortenCodeResult(result: CodeResult, maxOutputCharacters: number): CodeResult {
  const { length } = result.output;
  if (length <= maxOutputCharacters) return result;
  const share = maxOutputCharacters / length;
  const blocks = result.blocks.map((block) => shortenBlock(block, Math.floor(share * block.output.length)));
  return makeCodeResult({ ...result, truncated: true, blocks });
}

function shortenBlock(block: BlockResult, limit: number): BlockResult {
  const output = shortenMiddle(block.output, limit);
  const shortened = { ...block, output, truncated: true };
  if (block.stderr === "") return makeBlockResult(shortened);
  return { ...shortened, stdout: shortenMiddle(block.stdout, limit), stderr: shortenMiddle(block.stderr, limit) };
}

function imagesLeftOut(count: number): string {
  return count === 1
    ? "1 image was made that is not shown here."
    : `${count} images were made that are not shown here.`;
}

/** Head and tail of a text that is longer than `limit` characters, with a line between them that names the cut. */
function shortenMiddle(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  // Half a character at the cut is left out.
  const head = text.slice(0, half).replace(/[\uD800-\uDBFF]$/, "");
  const tail = half === 0 ? "" : text.slice(-half).replace(/^[\uDC00-\uDFFF]/, "");
  return `${head}\n[... ${text.length - head.length - tail.length} characters left out ...]\n${tail}`;
}
