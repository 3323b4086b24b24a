import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";

/**
 * Where a program is, as the system would find it.
 *
 * @param searchPath - directories, in the form of the `PATH` variable.
 * @returns its absolute path; `undefined` if it is not there or cannot be run.
 */
export function findProgram(name: string, searchPath: string): string | undefined {
  const endings =
    process.platform === "win32" ? ["", ...(process.env["PATHEXT"] ?? ".EXE;.CMD;.BAT").split(";")] : [""];
  const directories =
    path.basename(name) === name ? searchPath.split(path.delimiter).filter((each) => each !== "") : [""];
  for (const directory of directories) {
    for (const ending of endings) {
      const candidate = path.resolve(directory, name + ending);
      if (isProgram(candidate)) return candidate;
    }
  }
  return undefined;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
