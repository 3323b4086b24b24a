import { InvalidInputError, type CodeBlock, type ExecuteOptions } from "@fenced/core";

/** The longest delay that a timer takes, in milliseconds; longer ones would fire at once. */
const longestTimer = 2_147_483_647;

/**
 * Checks a time limit.
 *
 * @returns what a timer can be set to; `undefined` for `Infinity`: no timer.
 * @throws InvalidInputError if it is not a positive number.
 */
export function timerDelay(timeoutMs: number): number | undefined {
  if (!(timeoutMs > 0)) {
    throw new InvalidInputError(`The time limit timeoutMs is ${timeoutMs}`, {
      remedy: "Give a positive number of milliseconds, or Infinity for no limit.",
    });
  }
  return timeoutMs === Infinity ? undefined : Math.min(timeoutMs, longestTimer);
}

/** @throws InvalidInputError if there is nothing to run, or an option makes no sense. */
export function validateRun(blocks: readonly CodeBlock[], options: ExecuteOptions, takesStdin: boolean): void {
  if (blocks.length === 0) {
    throw new InvalidInputError("There are no code blocks to run", { remedy: "Pass at least one block." });
  }
  if (options.timeoutMs !== undefined) timerDelay(options.timeoutMs);
  if (options.env) validateEnvironment(options.env);
  if (options.stdin !== undefined && !takesStdin) {
    throw new InvalidInputError("This executor's blocks have no standard input", {
      remedy: "Leave `stdin` out, or write the data to a file with `files.write`.",
    });
  }
}

/** @throws InvalidInputError if no process could be given these variables. */
export function validateEnvironment(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (/^[^=\0]+$/.test(name) && !value.includes("\0")) continue;
    throw new InvalidInputError(`The environment variable ${JSON.stringify(name)} cannot be set`, {
      remedy: "Use a name without `=`, and no NUL character in name or value.",
    });
  }
}
