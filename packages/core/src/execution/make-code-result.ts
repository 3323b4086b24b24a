import type { BlockResult, CodeResult } from "./code-result.ts";

/** Which parts of a block's output came from which stream. */
export interface OutputLayout {
  /** Lengths of the parts in order, as JavaScript counts characters; those of standard error are negative. */
  readonly parts: readonly number[];
  /** Where the line stands that names a cut: after how many parts, and how many bytes of each stream it stands for. */
  readonly cut?: { readonly after: number; readonly stdout: number; readonly stderr: number };
}

/** What a `BlockResult` is made from. */
export interface BlockResultFields extends Omit<BlockResult, "stdout" | "stderr"> {
  /** Default: all of it is standard output. */
  readonly layout?: OutputLayout;
}

/** What a `CodeResult` is made from. */
export type CodeResultFields = Omit<CodeResult, "output" | "stdout" | "stderr">;

/** A `BlockResult` in the JSON of a `CodeResult`, which has the text. */
export interface CompactBlockResult extends Omit<BlockResultFields, "output"> {
  /** How much of the result's `output` is this block's, as JavaScript counts characters. */
  readonly outputLength: number;
}

/** A `CodeResult` with each character of output once. */
export interface CompactCodeResult extends Omit<CodeResult, "stdout" | "stderr" | "blocks"> {
  /** Blocks whose results were not made by `makeBlockResult` are as they were. */
  readonly blocks: readonly (CompactBlockResult | BlockResult)[];
}

const inspection = Symbol.for("nodejs.util.inspect.custom");
const fieldsOf = new WeakMap<BlockResult, BlockResultFields>();

/** The line that stands in output for what was cut out of it. */
export function cutLine(bytes: number): string {
  return `\n[... ${bytes} bytes of output left out ...]\n`;
}

/**
 * Makes the result of a block. Its text is in memory once: `stdout` and `stderr` are getters that cut it out of `output`. To
 * spread it, clone it with `structuredClone` or compare it gives a plain object with all three; `JSON.stringify` writes the
 * fields it was made from.
 */
export function makeBlockResult(fields: BlockResultFields): BlockResult {
  const { exitCode, output, layout, durationMs, timedOut, truncated } = fields;
  const result: BlockResult = {
    exitCode,
    output,
    get stdout() {
      return layout ? streamText(output, layout, "stdout") : output;
    },
    get stderr() {
      return layout ? streamText(output, layout, "stderr") : "";
    },
    durationMs,
    timedOut,
    truncated,
  };
  fieldsOf.set(result, fields);
  return shownAs(result, () => fields);
}

/**
 * Makes the result of a run from those of its blocks. `output`, `stdout` and `stderr` are getters that join the blocks' texts each
 * time they are read: keep what you read in a variable. To spread the result, clone it with `structuredClone` or compare it gives
 * a plain object with all of them; `JSON.stringify` writes `compactCodeResult`.
 */
export function makeCodeResult(fields: CodeResultFields): CodeResult {
  const { exitCode, displays, codeFile, timedOut, truncated, stateLost, network, durationMs, blocks } = fields;
  const result: CodeResult = {
    exitCode,
    get output() {
      return joined(blocks, "output");
    },
    get stdout() {
      return joined(blocks, "stdout");
    },
    get stderr() {
      return joined(blocks, "stderr");
    },
    displays,
    ...(codeFile === undefined ? {} : { codeFile }),
    timedOut,
    truncated,
    stateLost,
    ...(network === undefined ? {} : { network }),
    durationMs,
    blocks,
  };
  return shownAs(result, () => compactCodeResult(result));
}

/**
 * The fields of a result with each character of output once: in `output`, of which each block says its length. `expandCodeResult`
 * makes the result again. Displays are the same objects, with their bytes: `toJson` of `@fenced/core/web` is what goes over a wire.
 */
export function compactCodeResult(result: CodeResult): CompactCodeResult {
  const { stdout: _, stderr: __, ...fields } = { ...result };
  const texts = result.blocks.map(({ output }) => output).join("");
  // A result that was put together or changed by hand keeps what it says.
  const derived = texts === fields.output;
  const blocks = result.blocks.map((block) => (derived ? compactBlock(block) : undefined) ?? { ...block });
  return derived ? { ...fields, blocks } : { ...result, blocks };
}

/** The result that `compactCodeResult` was given, also after a way through JSON. */
export function expandCodeResult(compact: CompactCodeResult): CodeResult {
  let at = 0;
  const blocks = compact.blocks.map((block): BlockResult => {
    if ("output" in block) {
      at += block.output.length;
      return block;
    }
    const { outputLength, ...fields } = block;
    at += outputLength;
    return makeBlockResult({ ...fields, output: compact.output.slice(at - outputLength, at) });
  });
  if (at === compact.output.length && !("stdout" in compact)) return makeCodeResult({ ...compact, blocks });
  const { output } = compact;
  return { stdout: output, stderr: "", ...compact, blocks };
}

function compactBlock(block: BlockResult): CompactBlockResult | undefined {
  const fields = fieldsOf.get(block);
  if (!fields) return undefined;
  const { output, ...rest } = fields;
  return { ...rest, outputLength: output.length };
}

function streamText(output: string, { parts, cut }: OutputLayout, stream: "stdout" | "stderr"): string {
  const texts: string[] = [];
  let at = 0;
  for (const [index, part] of parts.entries()) {
    if (cut?.after === index) at += skipCut(texts, cut, stream);
    const length = Math.abs(part);
    if (part > 0 === (stream === "stdout")) texts.push(output.slice(at, at + length));
    at += length;
  }
  if (cut && cut.after >= parts.length) skipCut(texts, cut, stream);
  return texts.join("");
}

/** Adds what names the stream's own part of a cut; returns the length of what stands in the output. */
function skipCut(texts: string[], cut: NonNullable<OutputLayout["cut"]>, stream: "stdout" | "stderr"): number {
  if (cut[stream] > 0) texts.push(cutLine(cut[stream]));
  return cutLine(cut.stdout + cut.stderr).length;
}

function joined(blocks: readonly BlockResult[], name: "output" | "stdout" | "stderr"): string {
  return blocks.length === 1 ? (blocks[0]?.[name] ?? "") : blocks.map((block) => block[name]).join("");
}

/** Says how JSON and Node's `console.log` show an object, by methods that are not listed among its properties. */
function shownAs<Result extends object>(result: Result, toJSON: () => unknown): Result {
  Object.defineProperty(result, "toJSON", { value: toJSON });
  // Getters would be shown as "[Getter]".
  return Object.defineProperty(result, inspection, { value: () => ({ ...result }) });
}
