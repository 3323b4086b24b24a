import { canonicalLanguage, type CodeExecutor, InvalidInputError } from "@fenced/core";

/**
 * The languages to offer to a model: the executor's, limited to `wanted`.
 *
 * @throws InvalidInputError if the executor runs none of the wanted languages.
 */
export function offeredLanguages({ capabilities }: CodeExecutor, wanted: readonly string[] | undefined): string[] {
  const available = capabilities.languages.map(canonicalLanguage);
  if (wanted === undefined) return available;
  const names = new Set(wanted.map(canonicalLanguage));
  const offered = available.filter((language) => names.has(language));
  if (offered.length > 0) return offered;
  throw new InvalidInputError(`The executor runs none of the languages ${wanted.join(", ")}`, {
    remedy: `Offer languages that it runs: ${available.join(", ")}.`,
  });
}
