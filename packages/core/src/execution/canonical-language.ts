const aliases: Readonly<Record<string, string>> = {
  py: "python",
  python3: "python",
  shell: "sh",
  powershell: "pwsh",
  ps1: "pwsh",
  js: "javascript",
  node: "javascript",
  mjs: "javascript",
  ts: "typescript",
};

/**
 * Returns the name that executors use for a language: lower case, with aliases resolved. An unknown name is only
 * lower-cased.
 *
 * @example
 * canonicalLanguage("Py"); // "python"
 */
export function canonicalLanguage(language: string): string {
  const name = plainName(language);
  return Object.hasOwn(aliases, name) ? (aliases[name] ?? name) : name;
}

/**
 * The one of several languages that a name means. People write `shell` for scripts that need bash as well as for those
 * that do not, so it means bash if that is among them.
 *
 * @param available - canonical names.
 * @returns the canonical name if none of them is meant.
 *
 * @example
 * languageAmong("shell", ["bash", "sh"]); // "bash"
 */
export function languageAmong(language: string, available: readonly string[]): string {
  return plainName(language) === "shell" && available.includes("bash") ? "bash" : canonicalLanguage(language);
}

function plainName(language: string): string {
  return language.trim().toLowerCase();
}
