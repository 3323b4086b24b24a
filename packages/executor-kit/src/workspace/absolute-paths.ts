import path from "node:path";

/**
 * The options with these paths of this host made absolute. Call it in the executor's constructor, so that a path means the
 * same place for the executor's life, whatever `process.chdir` does later.
 *
 * @param names - options that are a path, a list of paths, or absent.
 */
export function absolutePaths<Options extends object>(
  options: Options,
  names: readonly (keyof Options & string)[],
): Options {
  const resolved = names.flatMap((name): [string, unknown][] => {
    const given: unknown = options[name];
    if (typeof given === "string") return [[name, path.resolve(given)]];
    return Array.isArray(given) ? [[name, given.map((each) => path.resolve(String(each)))]] : [];
  });
  return Object.assign({}, options, Object.fromEntries(resolved));
}
