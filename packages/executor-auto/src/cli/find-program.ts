import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";

/** The path of a program on the `PATH`; `null` if it is missing. */
export async function whereIs(program: string): Promise<string | null> {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    const file = join(directory, program);
    if (directory !== "" && (await isThere(file))) return file;
  }
  return null;
}

/** Whether a file exists. */
export async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
