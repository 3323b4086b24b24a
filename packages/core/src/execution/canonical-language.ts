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
  const name = language.trim().toLowerCase();
  return Object.hasOwn(aliases, name) ? (aliases[name] ?? name) : name;
}
