import { optionsSchema, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import {
  baseExecutorConfig,
  commandLineExecutorConfig,
  type BaseExecutorOptions,
  type CommandLineExecutorOptions,
  type KeepAliveOptions,
  keepAliveOptions,
} from "@fenced/executor-kit";
import {
  checkStateful,
  type StatefulExecutorOptions,
  statefulOptions,
  warmOption,
  type WarmOptions,
} from "@fenced/executor-kit/supervisor";
import { z } from "zod";

/** Options of `SshCommandLineCodeExecutor`; only `host` is required. */
export interface SshExecutorOptions
  extends BaseExecutorOptions, CommandLineExecutorOptions, StatefulExecutorOptions, KeepAliveOptions {
  /** The host, as you would pass it to `ssh`: a name, an address, or an alias from its configuration. It must run Linux and have Python 3.8 or later. */
  readonly host: string;
  /** The account to log in to. Default: from ssh's configuration, otherwise this program's user. */
  readonly user?: string | undefined;
  /** The port of sshd. Default: from ssh's configuration, otherwise 22. */
  readonly port?: number | undefined;
  /** A file with a private key. Default: the keys from ssh's configuration and the agent. */
  readonly identityFile?: string | undefined;
  /** A configuration file to use instead of the user's and the system's. Default: none. */
  readonly configFile?: string | undefined;
  /**
   * More ssh options by name, as in ssh_config(5): `{ ProxyJump: "gate", StrictHostKeyChecking: "accept-new" }`. You
   * cannot set options that this executor sets itself. Default: none.
   */
  readonly options?: Readonly<Record<string, string>> | undefined;
  /**
   * The blocks' working directory on the remote host, absolute or relative to the home directory there; created if
   * missing, never deleted. Default: a temporary one, deleted by `stop()`.
   */
  readonly workDir?: string | undefined;
  /**
   * Keep a Python interpreter waiting on the host, with modules already imported, and fork Python blocks from it; also keep
   * a Node process, if Node is installed, that becomes the next JavaScript block. Default: false.
   */
  readonly warm?: false | WarmOptions | undefined;
}

/** A word for ssh's command line: not an option, and a single line. */
const word = z.string().regex(/^[^-\0\n][^\0\n]*$/, "must not be empty, start with `-` or contain a line break");

/**
 * Options that override ssh's configuration: ssh never prompts; the code there does not get the user's agent, tickets
 * or variables, or a way back to this host; and the executor does not share a connection. The first value that ssh sees
 * counts, including that of `SetEnv`, which cannot be empty.
 */
export const fixedOptions: readonly (readonly [string, string])[] = [
  ["BatchMode", "yes"],
  ["ControlMaster", "no"],
  ["ControlPath", "none"],
  ["ControlPersist", "no"],
  ["ForwardAgent", "no"],
  ["ForwardX11", "no"],
  ["ClearAllForwardings", "yes"],
  ["GSSAPIDelegateCredentials", "no"],
  ["PermitLocalCommand", "no"],
  ["RemoteCommand", "none"],
  ["RequestTTY", "no"],
  ["SetEnv", "FENCED=ssh"],
  ["Tunnel", "no"],
];

/**
 * More of them, which OpenSSH knows since 8.7: the executor's programs run in the foreground, and their input is a stream
 * from this host.
 */
export const foregroundOptions: readonly (readonly [string, string])[] = [
  ["ForkAfterAuthentication", "no"],
  ["SessionType", "default"],
  ["StdinNull", "no"],
];

const fixedNames = new Set([...fixedOptions, ...foregroundOptions].map(([name]) => name.toLowerCase()));

const sshOptions: z.ZodType<Record<string, string>> = z.record(z.string(), z.string()).check(({ value, issues }) => {
  for (const [name, text] of Object.entries(value)) {
    const refuse = (message: string) => issues.push({ code: "custom", path: [name], input: text, message });
    if (!/^[a-z][a-z0-9]*$/i.test(name)) refuse("is not an option name as in ssh_config(5)");
    if (/[\0\n]/.test(text)) refuse("must not contain a line break or NUL character");
    if (fixedNames.has(name.toLowerCase())) refuse("is set by the executor: remove it");
  }
});

/** Checks the options, and the executor's config in a component model. */
export const sshExecutorOptions: z.ZodType<SshExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  ...commandLineExecutorConfig,
  host: word,
  user: word.exactOptional(),
  port: wholeNumberOption({ from: 1, to: 65_535 }).exactOptional(),
  identityFile: word.exactOptional(),
  configFile: word.exactOptional(),
  options: sshOptions.exactOptional(),
  workDir: word.exactOptional(),
  warm: warmOption.exactOptional(),
  ...keepAliveOptions,
  ...statefulOptions,
} satisfies OptionSchemas<SshExecutorOptions>).check(checkStateful);
