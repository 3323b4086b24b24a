import { canonicalLanguage, InvalidInputError } from "@fenced/core";
import type { LanguageCommand } from "./language-command.ts";

/**
 * The languages that command-line executors run, by canonical name. A `.js` file leaves it to Node whether it is an
 * ES module or CommonJS, as models write both; the warning that Node prints about that is switched off.
 */
export const defaultLanguages: Readonly<Record<string, LanguageCommand>> = {
  python: { extension: "py", command: ["python3"] },
  bash: { extension: "sh", command: ["bash"] },
  sh: { extension: "sh", command: ["sh"] },
  pwsh: { extension: "ps1", command: ["pwsh", "-NoProfile", "-NonInteractive", "-File"] },
  javascript: { extension: "js", command: ["node", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"] },
  typescript: { extension: "ts", command: ["node", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"] },
};

/**
 * The default languages with a user's own over them.
 *
 * @throws InvalidInputError if an entry has no program or an ending that is no plain word.
 */
export function languageTable(
  own: Readonly<Record<string, LanguageCommand>> | undefined,
): Readonly<Record<string, LanguageCommand>> {
  const table: Record<string, LanguageCommand> = { ...defaultLanguages };
  for (const [name, entry] of Object.entries(own ?? {})) {
    if (!/^\w+$/.test(entry.extension) || (entry.command[0] ?? "") === "") {
      throw new InvalidInputError(`The entry for "${name}" in \`languages\` is not usable`, {
        remedy: 'Give it an extension without a dot and a command, e.g. { extension: "rb", command: ["ruby"] }.',
      });
    }
    table[canonicalLanguage(name)] = entry;
  }
  return table;
}
