import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { BackendUnavailableError } from "@fenced/core";
import { pythonCandidates } from "@fenced/executor-kit";

const missing = "does not exist";
/** Python imports first from its current directory, and code may have left modules in that of this program. */
const safeDirectory = "/";
const probe = "import sys, jupyter_server, ipykernel; print(sys.executable)";

/**
 * The Python that can run a Jupyter server.
 *
 * @param given - the only one to try. Default: the active virtual environment, then each `python3` on the PATH.
 * @param env - the environment to look in.
 * @returns the absolute path of the program.
 * @throws BackendUnavailableError if there is none; names each Python found, what it lacks, and what to install.
 */
export async function findJupyterPython(
  given: string | undefined,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const found: Refusal[] = [];
  for (const candidate of given === undefined ? pythonCandidates(env["PATH"] ?? "") : [given]) {
    try {
      const program = /[\\/]/.test(candidate) ? resolve(candidate) : candidate;
      const { stdout } = await promisify(execFile)(program, ["-c", probe], {
        cwd: safeDirectory,
        env,
        timeout: 30_000,
      });
      const executable = stdout.trim();
      if (executable !== "") return executable;
    } catch (error) {
      const reason = whyNot(error);
      if (reason !== missing || given !== undefined) found.push({ candidate, reason });
    }
  }
  throw noPython(found);
}

/** A Python that cannot run a server. */
interface Refusal {
  readonly candidate: string;
  readonly reason: string;
}

function noPython(found: readonly Refusal[]): BackendUnavailableError {
  const python = found.find(({ reason }) => reason !== missing)?.candidate;
  const answers = found.map(({ candidate, reason }) => `${candidate} (${reason})`).join(", ");
  const install =
    python === undefined
      ? "Install Python 3.9 or newer with both packages"
      : `Install them: ${python} -m pip install jupyter_server ipykernel`;
  return new BackendUnavailableError(
    `No Python with jupyter_server and ipykernel was found: ${answers === "" ? "there is no Python on the PATH" : answers}`,
    {
      remedy: `${install} (Debian: apt-get install jupyter-server python3-ipykernel), or choose another Python with the option \`python\`.`,
      option: "python",
    },
  );
}

function whyNot(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const module = /No module named '([^']+)'/.exec(text)?.[1];
  if (module !== undefined) return `has no ${module}`;
  return text.includes("ENOENT") ? missing : (text.trim().split("\n").at(-1) ?? "");
}
