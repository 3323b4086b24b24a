import path from "node:path";

/**
 * The value of `PYTHONPATH` with which Python finds an executor's own modules before what the user put there.
 *
 * @param own - the executor's directories.
 * @param given - the user's `PYTHONPATH`.
 * @param delimiter - what stands between directories where the code runs. Default: this host's.
 */
export function pythonPath(
  own: readonly string[],
  given: string | undefined,
  delimiter: string = path.delimiter,
): string {
  return [...own, ...(given === undefined || given === "" ? [] : [given])].join(delimiter);
}
