import { PythonProblem } from "./python-problem.ts";
import type { PythonToken } from "./python-token.ts";

/** A logical line, which ends at a significant line break. */
export interface PythonLine {
  /** Its tokens without the `newline`; at least one. */
  readonly tokens: readonly [PythonToken, ...PythonToken[]];
  /** How many blocks contain it. */
  readonly level: number;
}

/** The columns of an indentation with tabs of eight and of one: in Python both must agree on which line is deeper. */
interface Indentation {
  readonly wide: number;
  readonly narrow: number;
}

/** CPython's own limit. */
const maximumDepth = 100;

/**
 * The logical lines of a source.
 *
 * @throws PythonProblem if the indentation does not fit.
 */
export function pythonLines(text: string, tokens: readonly PythonToken[]): PythonLine[] {
  const lines: PythonLine[] = [];
  const blocks: Indentation[] = [{ wide: 0, narrow: 0 }];
  for (const lineTokens of splitAtNewlines(tokens)) {
    const [first] = lineTokens;
    enterOrLeaveBlocks(blocks, indentationOf(text, first), first, lines.at(-1));
    lines.push({ tokens: lineTokens, level: blocks.length - 1 });
  }
  const last = lines.at(-1);
  if (last && opensBlock(last)) throw new PythonProblem(endOf(last), "an indented block is expected after this line");
  return lines;
}

function splitAtNewlines(tokens: readonly PythonToken[]): [PythonToken, ...PythonToken[]][] {
  const lines: [PythonToken, ...PythonToken[]][] = [];
  let line: [PythonToken, ...PythonToken[]] | undefined;
  for (const token of tokens) {
    if (token.kind === "newline") {
      line = undefined;
    } else if (line) {
      line.push(token);
    } else {
      line = [token];
      lines.push(line);
    }
  }
  return lines;
}

function enterOrLeaveBlocks(
  blocks: Indentation[],
  indentation: Indentation,
  first: PythonToken,
  previous: PythonLine | undefined,
): void {
  const deeper = isDeeper(indentation, blocks.at(-1), first);
  const expected = previous !== undefined && opensBlock(previous);
  if (expected && !deeper) throw new PythonProblem(first.from, "an indented block is expected here");
  if (deeper && !expected) throw new PythonProblem(first.from, "unexpected indentation");
  if (deeper) {
    if (blocks.length >= maximumDepth) throw new PythonProblem(first.from, "blocks are nested too deeply");
    blocks.push(indentation);
    return;
  }
  while ((blocks.at(-1)?.wide ?? 0) > indentation.wide) blocks.pop();
  const block = blocks.at(-1);
  if (block?.wide !== indentation.wide) {
    throw new PythonProblem(first.from, "this indentation does not match any outer block");
  }
  if (block.narrow !== indentation.narrow) throw mixedTabs(first);
}

function isDeeper(indentation: Indentation, block: Indentation | undefined, first: PythonToken): boolean {
  const { wide, narrow } = block ?? { wide: 0, narrow: 0 };
  if (indentation.wide > wide && indentation.narrow <= narrow) throw mixedTabs(first);
  return indentation.wide > wide;
}

function mixedTabs(first: PythonToken): PythonProblem {
  return new PythonProblem(first.from, "tabs and spaces are mixed in the indentation");
}

function indentationOf(text: string, first: PythonToken): Indentation {
  let [wide, narrow] = [0, 0];
  const lineStart = text.lastIndexOf("\n", first.from - 1) + 1;
  for (const character of text.slice(lineStart, first.from)) {
    if (character === "\f") [wide, narrow] = [0, 0];
    else [wide, narrow] = [character === "\t" ? wide + 8 - (wide % 8) : wide + 1, narrow + 1];
  }
  return { wide, narrow };
}

function opensBlock({ tokens }: PythonLine): boolean {
  return tokens.at(-1)?.text === ":";
}

function endOf({ tokens }: PythonLine): number {
  return (tokens.at(-1) ?? tokens[0]).to;
}
