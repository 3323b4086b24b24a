import { BackendUnavailableError, canonicalLanguage, type CodeExecutor, isHostFunction } from "@fenced/core";
import { capitalized } from "./explain.ts";
import type { Fence } from "./fences.ts";
import type { OpenExecutorOptions } from "./open-executor-options.ts";

/**
 * Checks that an executor supports what the options require.
 *
 * @throws BackendUnavailableError if it lacks a required language, or functions in a language.
 */
export function assertAble(
  { capabilities }: CodeExecutor,
  { title, newLanguage }: Pick<Fence, "title" | "newLanguage">,
  { requiredLanguages = [], functions = [] }: OpenExecutorOptions,
): void {
  const hasNot = (what: readonly string[], remedy: string): BackendUnavailableError =>
    new BackendUnavailableError(`${capitalized(title)} does not support ${[...new Set(what)].join(", ")} here`, {
      remedy,
    });
  const lacking = requiredLanguages.filter((each) => !capabilities.languages.includes(canonicalLanguage(each)));
  if (lacking.length > 0) {
    throw hasNot(lacking, newLanguage);
  }
  if (functions.some(isHostFunction) && capabilities.hostFunctions.length === 0) {
    throw hasNot(["host functions"], "Leave them out, or use another fence.");
  }
  const travelling = functions.flatMap((each) => (isHostFunction(each) ? [] : [each.language]));
  const without = travelling.filter((language) => !capabilities.functions.includes(language));
  if (without.length > 0) {
    throw hasNot(
      without.map((language) => `functions in ${language}`),
      "Leave them out, or use another fence.",
    );
  }
}
