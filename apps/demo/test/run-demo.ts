import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { onTestFinished } from "vitest";

const repository = fileURLToPath(new URL("../../../", import.meta.url));
const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const [node, ...words] = await bundledCommand(main);

/** How a demo ended, and all that it showed. */
export interface DemoOutcome {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts the demo as its user does, without a terminal; variables for a live model are there only if given here. */
export function startDemo(args: readonly string[], env: Readonly<Record<string, string>> = {}): StartedDemo {
  return start([node, ...words, ...args], env);
}

/** Runs it on the modules as they are, whose imports a test can change. */
export async function runDemoUnbundled(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<DemoOutcome> {
  const sources = ["--conditions=@fenced/source", "--import", import.meta.resolve("tsx"), main];
  return start([process.execPath, ...sources, ...args], env).outcome;
}

/** Starts it in a terminal of its own, by way of Python; what is written to `child.stdin` is typed there. */
export function startDemoInTerminal(args: readonly string[]): StartedDemo {
  const program = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
  return start(["python3", "-c", program, node, ...words, ...args], { TERM: "dumb" });
}

function start([program = "", ...args]: readonly string[], env: Readonly<Record<string, string>>): StartedDemo {
  const { OPENAI_API_KEY: _key, OPENAI_BASE_URL: _url, OPENAI_MODEL: _model, ...inherited } = process.env;
  const child = spawn(program, args, { env: { ...inherited, ...env }, stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  return { child, outcome: outcomeOf(child) };
}

export async function runDemo(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<DemoOutcome> {
  return startDemo(args, env).outcome;
}

/** How to run the demo in a container. */
interface InImage {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Folders of this machine, by the places where the container has them. */
  readonly mounts: Readonly<Record<string, string>>;
}

/** Runs the demo in a container that has Node and only what the image has besides. */
export async function runDemoInImage(image: string, { args, env, mounts }: InImage): Promise<DemoOutcome> {
  const folders = Object.entries({ ...mounts, [repository]: repository });
  const options = [
    ...folders.map(([from, to]) => `--volume=${from}:${to}:ro`),
    ...Object.entries(env).map(([name, value]) => `--env=${name}=${value}`),
  ];
  return start(["docker", "run", "--rm", "--init", ...options, image, "node", ...words, ...args], {}).outcome;
}

/** A demo under way. */
export interface StartedDemo {
  readonly child: ChildProcessWithoutNullStreams;
  readonly outcome: Promise<DemoOutcome>;
}

async function outcomeOf(child: ChildProcessWithoutNullStreams): Promise<DemoOutcome> {
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [exitCode] = (await once(child, "close")) as [number | null];
  return { exitCode, stdout, stderr };
}

/** A folder that is gone after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "fenced-demo-test-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** A folder for the PATH with Node and nothing else. */
export async function pathWithNodeOnly(): Promise<string> {
  const folder = await temporaryFolder();
  await symlink(process.execPath, join(folder, "node"));
  return folder;
}
