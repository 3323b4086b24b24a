/** What a program needs to run at all, and nothing that a user would call a secret. */
const passedOn: ReadonlySet<string> = new Set([
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LANGUAGE",
  "TZ",
  "TMPDIR",
  "TEMP",
  "TMP",
  "SYSTEMROOT",
  "SYSTEMDRIVE",
  "WINDIR",
  "COMSPEC",
  "PATHEXT",
  "USERPROFILE",
  "APPDATA",
  "LOCALAPPDATA",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "PROGRAMFILES(X86)",
  "NUMBER_OF_PROCESSORS",
  "PROCESSOR_ARCHITECTURE",
]);

/**
 * The part of this process's environment that blocks may see: what programs need to run, and `LC_*`.
 *
 * @param inherit - names of further variables to pass on.
 */
export function hostEnvironment(inherit: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    const upper = name.toUpperCase();
    if (value === undefined) continue;
    if (!passedOn.has(upper) && !upper.startsWith("LC_") && !inherit.includes(name)) continue;
    // Windows takes `Path` and `PATH` for one, and would pass on only one of them.
    env[process.platform === "win32" ? upper : name] = value;
  }
  return env;
}
