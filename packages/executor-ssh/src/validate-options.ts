import { InvalidInputError } from "@fenced/core";
import { fixedOptions } from "./connection/ssh-arguments.ts";
import type { SshExecutorOptions } from "./ssh-executor-options.ts";

/** @throws InvalidInputError if the options make no sense, whatever the host. */
export function validateOptions(options: SshExecutorOptions): void {
  const { host, user, port, workDir, identityFile, configFile } = options;
  for (const [name, value] of Object.entries({ host, user, workDir, identityFile, configFile })) {
    if (value !== undefined && (value === "" || value.startsWith("-") || /[\0\n]/.test(value))) {
      refuse(
        `\`${name}\` is ${JSON.stringify(value)}`,
        "Give one that is not empty, has one line and no `-` in front.",
      );
    }
  }
  if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65_536)) {
    refuse(`\`port\` is ${port}`, "Give a whole number from 1 to 65535.");
  }
  const fixed = new Set(fixedOptions.map(([name]) => name.toLowerCase()));
  for (const [name, value] of Object.entries(options.options ?? {})) {
    if (!/^[a-z][a-z0-9]*$/i.test(name) || /[\0\n]/.test(value)) {
      refuse(
        `The ssh option ${JSON.stringify(name)} cannot be passed on`,
        "Name it as ssh_config(5) does, in one line.",
      );
    }
    if (fixed.has(name.toLowerCase())) {
      refuse(`The ssh option ${name} is set by the executor itself`, "Leave it out.");
    }
  }
  assertVariables(options.env ?? {});
}

/** @throws InvalidInputError if a shell could not be given these variables. */
export function assertVariables(env: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(env)) {
    if (/^[A-Za-z_]\w*$/.test(name)) continue;
    refuse(
      `The environment variable ${JSON.stringify(name)} cannot be set by a shell`,
      "Use letters, digits and `_`, and no digit in front.",
    );
  }
}

function refuse(problem: string, remedy: string): never {
  throw new InvalidInputError(problem, { remedy });
}
