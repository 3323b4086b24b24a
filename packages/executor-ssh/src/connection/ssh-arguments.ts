import { spawnSync } from "node:child_process";
import path from "node:path";
import { fixedOptions, foregroundOptions, type SshExecutorOptions } from "../ssh-executor-options.ts";

/** Defaults that `options` can override: a broken connection is noticed within seconds. */
const defaults: readonly (readonly [string, string])[] = [
  ["ConnectTimeout", "15"],
  ["ServerAliveInterval", "5"],
  ["ServerAliveCountMax", "2"],
];

/** What one run of `ssh` is for. */
export interface SshCall {
  /** `master` makes the connection; `session` uses it. */
  readonly role: "master" | "session";
  /** The socket through which sessions find the master. */
  readonly control: string;
  /** The file for ssh's own messages. */
  readonly log: string;
  /** What to run on the remote host. */
  readonly command: string;
}

/** The arguments of `ssh`. */
export function sshArguments(options: SshExecutorOptions, { role, control, log, command }: SshCall): string[] {
  const { host, user, port, identityFile, configFile } = options;
  const own = new Map([
    ...fixedOptions,
    ...(knowsForeground() ? foregroundOptions : []),
    ["ControlPath", control],
    ["ControlMaster", role === "master" ? "yes" : "no"],
  ]);
  const settings = [...own, ...Object.entries(options.options ?? {}), ...defaults];
  return [
    ...(configFile === undefined ? [] : ["-F", path.resolve(configFile)]),
    ...settings.flatMap(([name, value]) => ["-o", `${name}=${value}`]),
    ...(user === undefined ? [] : ["-l", user]),
    ...(port === undefined ? [] : ["-p", String(port)]),
    ...(identityFile === undefined ? [] : ["-i", path.resolve(identityFile)]),
    "-E",
    log,
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
