import {
  canonicalLanguage,
  type CodeBlock,
  type CodeExecutor,
  type Fence,
  findFences,
  languageAmong,
} from "@fenced/core";
import { withoutThoughts } from "../common/without-thoughts.ts";

/** The fenced code of some texts. */
export interface FencedCode {
  /** Closed blocks in a language that runs, in order. */
  readonly runnable: readonly CodeBlock[];
  /** The languages of closed blocks that do not run, each once; an empty string for blocks without a language. */
  readonly otherLanguages: readonly string[];
  /** The languages of blocks that run, but were never closed; each once. */
  readonly unclosed: readonly string[];
  /** A line of backticks inside code may have ended a block: what follows the block looks like the rest of it. */
  readonly mayBeSplit: boolean;
}

/** The executor's languages, limited to `supported`. The executor must be started. */
export function runnableLanguages(executor: CodeExecutor, supported: readonly string[] | undefined): string[] {
  const available = executor.capabilities.languages.map(canonicalLanguage);
  if (supported === undefined) return available;
  const wanted = new Set(supported.map(canonicalLanguage));
  return available.filter((language) => wanted.has(language));
}

/** Finds the fenced code in texts. */
export function findFencedCode(texts: readonly string[], languages: readonly string[]): FencedCode {
  const fences = texts.flatMap((text) => findFences(withoutThoughts(text)));
  const runs = ({ language }: Fence): boolean => languages.includes(languageAmong(language, languages));
  const languagesOf = (some: readonly Fence[]): string[] => [...new Set(some.map(({ language }) => language))];
  return {
    runnable: fences.filter((fence) => fence.closed && runs(fence)).map(({ language, code }) => ({ language, code })),
    otherLanguages: languagesOf(fences.filter((fence) => fence.closed && !runs(fence))),
    unclosed: languagesOf(fences.filter((fence) => !fence.closed && (runs(fence) || fence.language === ""))),
    mayBeSplit: fences.some((fence, index) => {
      if (!runs(fence) || !fence.closed) return false;
      return fences[index + 1]?.language === "" || /^[ \t]*(?:```|~~~)/m.test(fence.code);
    }),
  };
}

// Languages that are shown rather than run, for callers that do not know what the executor can run.
const shownNotRun: ReadonlySet<string> = new Set(
  "text txt plaintext plain output console json jsonc json5 yaml yml toml xml html css csv tsv markdown md diff mermaid".split(
    " ",
  ),
);

/** Whether a fence's language is one that people run. */
export function isProgramming(language: string): boolean {
  return language !== "" && !shownNotRun.has(language.toLowerCase());
}

/** Whether a text without code to run was meant to contain some. */
export function isMeantToRun({ otherLanguages, unclosed }: FencedCode): boolean {
  return unclosed.length > 0 || otherLanguages.some(isProgramming);
}

/** Tells a model that it wrote no code to run. Contains no fence, which another agent could run. */
export function noCodeMessage(code: FencedCode, languages: readonly string[]): string {
  const why = whyNotRun(code);
  return (
    `There is no code block to run.${why === "" ? "" : ` ${why}`} To have code run, put it between a line that says ` +
    `\`\`\`${languages[0] ?? "python"} and a line that says \`\`\`. Languages that run here: ${languages.join(", ")}.`
  );
}

/** Tells a model which of its blocks did not run; empty if all of them ran. */
export function notRunNote(code: FencedCode, languages: readonly string[]): string {
  const why = whyNotRun(code);
  if (code.otherLanguages.length + code.unclosed.length === 0) return "";
  return `Not all of the code was run. ${why} Languages that run here: ${languages.join(", ")}.`;
}

/** Appends a note to a text, if there is one. */
export function withNote(text: string, note: string): string {
  return note === "" ? text : `${text.trimEnd()}\n\n${note}`;
}

function whyNotRun({ otherLanguages, unclosed, mayBeSplit }: FencedCode): string {
  const named = otherLanguages.filter((language) => language !== "");
  const sentences = [
    named.length === 0 ? "" : `Blocks in ${named.join(", ")} are not run here.`,
    otherLanguages.includes("") ? "Blocks that do not name a language are not run." : "",
    unclosed.length === 0 ? "" : "A block that is never closed is not run: end it with a line that says ```.",
    mayBeSplit ? "If the code itself contains lines with ```, put lines with four backticks around it: ````." : "",
  ];
  return sentences.filter((sentence) => sentence !== "").join(" ");
}
