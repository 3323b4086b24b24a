import path from "node:path";
import { InvalidInputError } from "@fenced/core";

/**
 * The options with these paths of this host made absolute. Call it in the executor's constructor, so that a path means the
 * same place for the executor's life, whatever `process.chdir` does later.
 *
 * @param names - options that are a path, a list of paths, or absent.
 * @throws InvalidInputError for a path that means no file: see `absolutePath`.
 */
export function absolutePaths<Options extends object>(
  options: Options,
  names: readonly (keyof Options & string)[],
): Options {
  const resolved = names.flatMap((name): [string, unknown][] => {
    const given: unknown = options[name];
    if (typeof given === "string") return [[name, absolutePath(given, name)]];
    if (!Array.isArray(given)) return [];
    return [[name, given.map((each, index) => absolutePath(String(each), `${name}[${index}]`))]];
  });
  return Object.assign({}, options, Object.fromEntries(resolved));
}

/**
 * An absolute path of this host.
 *
 * @param option - where the path was given.
 * @throws InvalidInputError if it starts with `~`, which only a shell expands, or contains a NUL character.
 */
export function absolutePath(given: string, option: string): string {
  if (given.includes("\0")) {
    throw new InvalidInputError(`\`${option}\` contains a NUL character, which no path can: ${JSON.stringify(given)}`, {
      remedy: "Leave the character out.",
      option,
    });
  }
  if (startsInHome(given)) {
    throw new InvalidInputError(`\`${option}\` is ${JSON.stringify(given)}, but only a shell expands \`~\``, {
      remedy:
        'Start the path with `os.homedir()`, e.g. join(homedir(), "work"); for a directory that is named `~`, put `./` before it.',
      option,
    });
  }
  return path.resolve(given);
}

/** Whether a shell would replace the start of a path by a home directory. */
export function startsInHome(given: string): boolean {
  return /^~[\w.-]*(?:\/|$)/.test(given);
}
