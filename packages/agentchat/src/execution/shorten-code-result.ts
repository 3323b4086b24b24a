import { type BlockResult, type CodeResult, makeBlockResult, makeCodeResult, shortenMiddle } from "@fenced/core";

/**
 * Shortens the output of a result's blocks to `maxOutputCharacters` in total, in proportion to their lengths, and keeps
 * the head and tail of each. The rest of the result is unchanged. Use it for results that you store, for example in a
 * chat's state.
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
