import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { BackendUnavailableError } from "@fenced/core";

const probe = "import sys, jupyter_server, ipykernel; print(sys.executable)";

/**
 * The Python that can run a Jupyter server.
 *
 * @param given - the one that must be it; without, the virtual environment that is active and those on the PATH.
 * @param env - the environment to look in.
 * @returns the absolute path of its program.
 * @throws BackendUnavailableError that says what was tried and what to install.
 */
export async function findJupyterPython(
  given: string | undefined,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const candidates = given === undefined ? candidatesOf(env) : [given];
  const answers: string[] = [];
  for (const candidate of candidates) {
    try {
      const { stdout } = await promisify(execFile)(candidate, ["-c", probe], { env, timeout: 30_000 });
      const executable = stdout.trim();
      if (executable !== "") return executable;
    } catch (error) {
      answers.push(`${candidate} (${whyNot(error)})`);
    }
  }
  const install = given ?? "python3";
  throw new BackendUnavailableError(`No Python with jupyter_server and ipykernel was found: ${answers.join(", ")}`, {
    remedy: `Install them: ${install} -m pip install jupyter_server ipykernel (Debian: apt-get install jupyter-server python3-ipykernel), or name the right Python in the option \`python\`.`,
  });
}

function candidatesOf(env: Readonly<Record<string, string>>): string[] {
  const active = process.env["VIRTUAL_ENV"] ?? "";
  if (process.platform === "win32") {
    return [...(active === "" ? [] : [`${active}\\Scripts\\python.exe`]), "python", "py"];
  }
  // The system's Python may have what a newer one on the PATH has not.
  const found = (env["PATH"] ?? "").split(":").flatMap((place) => (place === "" ? [] : [`${place}/python3`]));
  return [...new Set([...(active === "" ? [] : [`${active}/bin/python`]), "python3", ...found, "/usr/bin/python3"])];
}

function whyNot(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const module = /No module named '([^']+)'/.exec(text)?.[1];
  if (module !== undefined) return `has no ${module}`;
  return text.includes("ENOENT") ? "is not there" : (text.trim().split("\n").at(-1) ?? "");
}
