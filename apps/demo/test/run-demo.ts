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

/** How a demo ended, and everything it printed. */
export interface DemoOutcome {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts the demo as its user does, without a terminal; variables for a live model are set only if given here. */
export function startDemo(args: readonly string[], env: Readonly<Record<string, string>> = {}): StartedDemo {
  return start([node, ...words, ...args], env);
}

/** Runs the demo without bundling it, so that a test can change what it imports. */
export async function runDemoUnbundled(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<DemoOutcome> {
  const sources = ["--conditions=@fenced/source", "--import", import.meta.resolve("tsx"), main];
  return start([process.execPath, ...sources, ...args], env).outcome;
}

/** Starts the demo in a terminal of its own, opened by Python; what is written to `child.stdin` is typed there. */
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
  /** Folders of this machine, each with its path in the container. */
  readonly mounts: Readonly<Record<string, string>>;
}

/** Runs the demo in a container with only Node and what else the image has. */
export async function runDemoInImage(image: string, { args, env, mounts }: InImage): Promise<DemoOutcome> {
  const folders = Object.entries({ ...mounts, [repository]: repository });
  const options = [
    ...folders.map(([from, to]) => `--volume=${from}:${to}:ro`),
    ...Object.entries(env).map(([name, value]) => `--env=${name}=${value}`),
  ];
  return start(["docker", "run", "--rm", "--init", ...options, image, "node", ...words, ...args], {}).outcome;
}

/** A running demo. */
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

/** A folder that is removed after the test. */
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
