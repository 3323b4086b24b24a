import path from "node:path";
import { fixedOptions, type SshExecutorOptions } from "../ssh-executor-options.ts";

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
  const own = new Map([...fixedOptions, ["ControlPath", control], ["ControlMaster", role === "master" ? "yes" : "no"]]);
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
