import { canonicalLanguage, type CodeBlock, type CodeExecutor, extractCodeBlocks } from "@fenced/core";

/** The fenced code of some texts. */
export interface FencedCode {
  /** Blocks in a language that runs, in order. */
  readonly runnable: readonly CodeBlock[];
  /** The languages of the other blocks, each once. */
  readonly otherLanguages: readonly string[];
}

/** The languages that an executor has, narrowed to those that are wanted. The executor must be started. */
export function runnableLanguages(executor: CodeExecutor, supported: readonly string[] | undefined): string[] {
  const available = executor.capabilities.languages.map(canonicalLanguage);
  if (supported === undefined) return available;
  const wanted = new Set(supported.map(canonicalLanguage));
  return available.filter((language) => wanted.has(language));
}

/** Finds the fenced code in texts. */
export function findFencedCode(texts: readonly string[], languages: readonly string[]): FencedCode {
  const blocks = texts.flatMap((text) => extractCodeBlocks(text));
  const runs = ({ language }: CodeBlock): boolean => languages.includes(canonicalLanguage(language));
  const others = blocks.filter((block) => !runs(block)).map(({ language }) => language);
  return { runnable: blocks.filter(runs), otherLanguages: [...new Set(others)].filter((language) => language !== "") };
}

/** What a model is told that wrote no code to run. Holds no fence itself: another agent could run that. */
export function noCodeMessage({ otherLanguages }: FencedCode, languages: readonly string[]): string {
  const others = otherLanguages.length === 0 ? "" : ` Blocks in ${otherLanguages.join(", ")} are not run here.`;
  return (
    `There is no code block to run.${others} To have code run, put it between a line that says ` +
    `\`\`\`${languages[0] ?? "python"} and a line that says \`\`\`. Languages that run here: ${languages.join(", ")}.`
  );
}
