import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { hostEnvironment } from "../../languages/command-languages.ts";
import { supervisorModules } from "../python-programs.ts";

const compileProgram: string = readFileSync(new URL("./compile.py", import.meta.url), "utf8");
const [limitMs, longest] = [20_000, 4_194_304];

/**
 * Compiles the supervisor's program, see `supervisorLoader`, in a process that does not keep this one running.
 *
 * @param python - absolute path of a Python of this host that no code can have changed.
 * @param searchPath - where it finds other programs, in case it is a version manager's script.
 * @returns `undefined` if that does not work.
 */
export function compileSupervisor(python: string, searchPath: string): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const words = ["-I", "-S", "-X", "utf8", "-c", compileProgram];
    const env = { ...hostEnvironment([]), PATH: searchPath };
    const options = { cwd: "/", env, timeout: limitMs, maxBuffer: longest } as const;
    const child = execFile(python, words, { ...options, encoding: "buffer" }, (error, output) => {
      resolve(error ? undefined : output);
    });
    child.unref();
    child.stdin?.on("error", () => {});
    child.stdin?.end(JSON.stringify(supervisorModules));
  });
}
