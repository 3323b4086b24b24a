import type { BlockResult, CodeResult } from "./code-result.ts";

/** Says which parts of a block's output came from which stream. */
export interface OutputLayout {
  /** Lengths of the parts in order, in UTF-16 code units; negative for standard error. */
  readonly parts: readonly number[];
  /** The position of the line that marks a cut: after how many parts, and how many bytes of each stream it replaces. */
  readonly cut?: { readonly after: number; readonly stdout: number; readonly stderr: number };
}

/** The fields that `makeBlockResult` takes. */
export interface BlockResultFields extends Omit<BlockResult, "stdout" | "stderr"> {
  /** Default: everything is standard output. */
  readonly layout?: OutputLayout;
}

/** The fields that `makeCodeResult` takes. */
export type CodeResultFields = Omit<CodeResult, "output" | "stdout" | "stderr">;

/** A `BlockResult` inside a `CompactCodeResult`, which holds its text. */
export interface CompactBlockResult extends Omit<BlockResultFields, "output"> {
  /** The length of this block's part of the result's `output`, in UTF-16 code units. */
  readonly outputLength: number;
}

/** A `CodeResult` that contains each character of output only once. */
export interface CompactCodeResult extends Omit<CodeResult, "stdout" | "stderr" | "blocks"> {
  /** Blocks that `makeBlockResult` did not create are unchanged. */
  readonly blocks: readonly (CompactBlockResult | BlockResult)[];
}

const inspection = Symbol.for("nodejs.util.inspect.custom");
const fieldsOf = new WeakMap<BlockResult, BlockResultFields>();

/** The line that replaces output that was cut. */
export function cutLine(bytes: number): string {
  return `\n[... ${bytes} bytes of output left out ...]\n`;
}

/**
 * Creates a block's result. Its text is in memory only once: `stdout` and `stderr` are getters that extract it from
 * `output`. Spreading the result, cloning it with `structuredClone` or comparing it sees a plain object with all three;
 * `JSON.stringify` writes the fields that you passed.
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
 * Creates a run's result from its blocks' results. `output`, `stdout` and `stderr` are getters that join the blocks'
 * texts on every read, so keep the text in a variable. Spreading the result, cloning it with `structuredClone` or
 * comparing it sees a plain object with all of them; `JSON.stringify` writes `compactCodeResult`.
 */
export function makeCodeResult(fields: CodeResultFields): CodeResult {
  const {
    exitCode,
    displays,
    codeFile,
    timedOut,
    truncated,
    stateLost,
    network,
    changes,
    usage,
    unrecorded,
    durationMs,
    blocks,
  } = fields;
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
    ...(changes === undefined ? {} : { changes }),
    ...(usage === undefined ? {} : { usage }),
    ...(unrecorded === undefined ? {} : { unrecorded }),
    durationMs,
    blocks,
  };
  return shownAs(result, () => compactCodeResult(result));
}

/**
 * The fields of a result with each character of output only once: in `output`, with the length of each block's part.
 * `expandCodeResult` restores the result. Displays are the same objects, with their bytes; use `toJson` of
 * `@fenced/core/web` to send them over a network.
 */
export function compactCodeResult(result: CodeResult): CompactCodeResult {
  const { stdout: _, stderr: __, ...fields } = { ...result };
  const texts = result.blocks.map(({ output }) => output).join("");
  // Keep the texts of a result that was assembled or changed by hand.
  const derived = texts === fields.output;
  const blocks = result.blocks.map((block) => (derived ? compactBlock(block) : undefined) ?? { ...block });
  return derived ? { ...fields, blocks } : { ...result, blocks };
}

/** Restores the result that `compactCodeResult` was given, even after a round trip through JSON. */
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

/** Adds the line for this stream's share of a cut; returns the length of the line in the output. */
function skipCut(texts: string[], cut: NonNullable<OutputLayout["cut"]>, stream: "stdout" | "stderr"): number {
  if (cut[stream] > 0) texts.push(cutLine(cut[stream]));
  return cutLine(cut.stdout + cut.stderr).length;
}

function joined(blocks: readonly BlockResult[], name: "output" | "stdout" | "stderr"): string {
  return blocks.length === 1 ? (blocks[0]?.[name] ?? "") : blocks.map((block) => block[name]).join("");
}

/** Defines how JSON and Node's `console.log` show an object, with non-enumerable methods. */
function shownAs<Result extends object>(result: Result, toJSON: () => unknown): Result {
  Object.defineProperty(result, "toJSON", { value: toJSON });
  // Without this, getters would print as "[Getter]".
  return Object.defineProperty(result, inspection, { value: () => ({ ...result }) });
}
