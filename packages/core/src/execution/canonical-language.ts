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
 * The one name under which executors know a language: lower case, aliases resolved. An unknown name comes back in
 * lower case.
 *
 * @example
 * canonicalLanguage("Py"); // "python"
 */
export function canonicalLanguage(language: string): string {
  const name = language.trim().toLowerCase();
  return Object.hasOwn(aliases, name) ? (aliases[name] ?? name) : name;
}
