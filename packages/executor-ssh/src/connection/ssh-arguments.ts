import { spawnSync } from "node:child_process";
import path from "node:path";
import { fixedOptions, foregroundOptions, type SshExecutorOptions } from "../ssh-executor-options.ts";

/** Defaults that `options` can override: a broken connection is noticed within seconds. */
const defaults: readonly (readonly [string, string])[] = [
  ["ConnectTimeout", "15"],
  ["ServerAliveInterval", "5"],
  ["ServerAliveCountMax", "2"],
];

/**
 * The arguments of `ssh`.
 *
 * @param command - what to run on the remote host.
 */
export function sshArguments(options: SshExecutorOptions, command: string): string[] {
  const { host, user, port, identityFile, configFile } = options;
  const own = [...fixedOptions, ...(knowsForeground() ? foregroundOptions : [])];
  const settings = [...own, ...Object.entries(options.options ?? {}), ...defaults];
  return [
    ...(configFile === undefined ? [] : ["-F", path.resolve(configFile)]),
    ...settings.flatMap(([name, value]) => ["-o", `${name}=${value}`]),
    ...(user === undefined ? [] : ["-l", user]),
    ...(port === undefined ? [] : ["-p", String(port)]),
    ...(identityFile === undefined ? [] : ["-i", path.resolve(identityFile)]),
    "--",
    host,
    command,
  ];
}

let foreground: boolean | undefined;

/** Older versions reject the options, but no configuration that they accept has them. */
function knowsForeground(): boolean {
  foreground ??= isRecent(spawnSync("ssh", ["-V"], { encoding: "utf8", timeout: 10_000 }).stderr);
  return foreground;
}

function isRecent(version: string | null): boolean {
  const [, major = 0, minor = 0] = (/OpenSSH_(?:for_Windows_)?(\d+)\.(\d+)/.exec(version ?? "") ?? []).map(Number);
  return major > 8 || (major === 8 && minor >= 7);
}
