import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/**
 * Puts the directory of the actual first Python on the `PATH` before all others. Version managers such as pyenv put a shell
 * script first, which takes longer than Python itself; tests start Python thousands of times.
 */
export function pathWithoutShims(path: string): string {
  const { status, stdout } = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" });
  if (status !== 0) return path;
  const directory = dirname(stdout.trim());
  const first = path.split(delimiter).find((each) => existsSync(join(each, "python3")));
  return first === directory || !existsSync(join(directory, "python3")) ? path : `${directory}${delimiter}${path}`;
}
