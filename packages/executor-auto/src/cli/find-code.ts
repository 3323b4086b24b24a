import { canonicalLanguage, type CodeBlock, findFences } from "@fenced/core";
import { defaultLanguages } from "@fenced/executor-kit";

/** The code found in a text. */
export interface FoundCode {
  /** Closed fences in languages that executors know, in order. */
  readonly blocks: readonly CodeBlock[];
  /** Canonical names of their languages, each once. */
  readonly languages: readonly string[];
  /** Sentences about fences that do not run. */
  readonly notes: readonly string[];
}

/** Finds the code fences of a Markdown text. Fences that only show something (JSON, output, text) are not code. */
export function findCode(markdown: string): FoundCode {
  const fences = findFences(markdown);
  const isKnown = ({ language }: CodeBlock): boolean => Object.hasOwn(defaultLanguages, canonicalLanguage(language));
  const closed = fences.filter((each) => each.closed);
  const blocks = closed.filter(isKnown).map(({ language, code }) => ({ language, code }));
  const others = [...new Set(closed.filter((each) => !isKnown(each)).map(({ language }) => language || "no language"))];
  const notes = [
    ...(others.length === 0 ? [] : [`Not run: blocks in ${others.join(", ")}.`]),
    ...(closed.length === fences.length ? [] : ["Not run: a block without a closing fence, which may be incomplete."]),
  ];
  return { blocks, languages: [...new Set(blocks.map(({ language }) => canonicalLanguage(language)))], notes };
}
