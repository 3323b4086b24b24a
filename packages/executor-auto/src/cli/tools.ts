import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { homeDirectory } from "@fenced/core/runtime";
import { pythonCandidates } from "@fenced/executor-kit";

/** A program or a setting, and whether this machine has it. */
export interface FoundTool {
  readonly name: string;
  /** Its version or path; `null` if it is missing. */
  readonly found: string | null;
  /** What it enables: a level of isolation, and what provides it. */
  readonly gives: string;
  /** The command that installs it, if it is missing and one is known. */
  readonly install?: string;
}

/** A tool's name in package managers. */
interface PackageNames {
  readonly apt?: string;
  readonly dnf?: string;
  readonly brew?: string;
  /** A command that works everywhere. */
  readonly other?: string;
}

/** How to look for a tool. */
interface Tool {
  readonly name: string;
  readonly gives: string;
  /** Resolves with its version or path; `null` if it is missing. */
  readonly find: () => Promise<string | null>;
  readonly packages?: PackageNames;
}

const onMac = process.platform === "darwin";

const tools: readonly Tool[] = [
  {
    name: "Docker",
    gives: "container",
    find: async () => versionOf("docker", ["--version"]),
    packages: { apt: "docker.io", dnf: "moby-engine", brew: "--cask docker" },
  },
  {
    name: "Podman",
    gives: "container",
    find: async () => versionOf("podman", ["--version"]),
    packages: { apt: "podman", dnf: "podman", brew: "podman" },
  },
  {
    name: "gVisor",
    gives: "a kernel in user space, if Docker registers it",
    find: async () => versionOf("runsc", ["--version"]),
    packages: { apt: "runsc" },
  },
  onMac
    ? { name: "sandbox-exec", gives: "os-sandbox", find: async () => whereIs("sandbox-exec") }
    : {
        name: "bubblewrap",
        gives: "os-sandbox",
        find: async () => versionOf("bwrap", ["--version"]),
        packages: { apt: "bubblewrap", dnf: "bubblewrap" },
      },
  {
    name: "Python",
    gives: "none by itself; os-sandbox needs it",
    find: async () => versionOf("python3", ["--version"]),
    packages: { apt: "python3", dnf: "python3", brew: "python" },
  },
  {
    name: "Jupyter",
    gives: "none; container with its own image",
    find: findJupyter,
    packages: {
      apt: "jupyter-server python3-ipykernel",
      dnf: "python3-jupyter-server python3-ipykernel",
      other: "python3 -m pip install jupyter_server ipykernel",
    },
  },
  {
    name: "ssh",
    gives: "remote, on your own host",
    find: async () => versionOf("ssh", ["-V"]),
    packages: { apt: "openssh-client", dnf: "openssh-clients" },
  },
  { name: "kubeconfig", gives: "remote, in your own cluster", find: findKubeconfig },
];

/** Looks for all tools. */
export async function findTools(): Promise<FoundTool[]> {
  return Promise.all(
    tools.map(async ({ name, gives, find, packages }) => {
      const found = await find();
      const install = found === null && packages ? await installCommand(packages) : undefined;
      return { name, found, gives, ...(install === undefined ? {} : { install }) };
    }),
  );
}

const answerMs = 10_000;
/** Some programs, such as Python, load files from their current directory, where code may have left something. */
const cwd = "/";

/** The version that a program reports; `null` if it is missing or reports none. */
async function versionOf(program: string, args: readonly string[]): Promise<string | null> {
  const file = /[\\/]/.test(program) ? program : await whereIs(program);
  if (file === null || !(await isThere(file))) return null;
  return new Promise((resolve) => {
    const limits = { cwd, timeout: answerMs, killSignal: "SIGKILL", maxBuffer: 65_536 } as const;
    execFile(program, args, limits, (error, stdout, stderr) => {
      const version = /\d+(?:\.\d+)+/.exec(stdout + stderr)?.[0] ?? null;
      resolve(error ? null : version);
    });
  });
}

/** Jupyter in any of the Pythons in which a local server looks for it. */
async function findJupyter(): Promise<string | null> {
  const probe = "import ipykernel, jupyter_server; print(jupyter_server.__version__)";
  for (const python of pythonCandidates(process.env["PATH"] ?? "")) {
    const version = await versionOf(python, ["-c", probe]);
    if (version !== null) return version;
  }
  return null;
}

async function findKubeconfig(): Promise<string | null> {
  const [first] = (process.env["KUBECONFIG"] ?? "").split(delimiter);
  const file = first === undefined || first === "" ? join(homeDirectory(), ".kube", "config") : first;
  return (await isThere(file)) ? file : null;
}

/** The command that installs a tool on this machine; `undefined` if none is known. */
async function installCommand({ apt, dnf, brew, other }: PackageNames): Promise<string | undefined> {
  const asRoot = process.getuid?.() === 0 ? "" : "sudo ";
  if (apt !== undefined && (await whereIs("apt-get")) !== null) return `${asRoot}apt-get install -y ${apt}`;
  if (dnf !== undefined && (await whereIs("dnf")) !== null) return `${asRoot}dnf install -y ${dnf}`;
  if (brew !== undefined && (await whereIs("brew")) !== null) return `brew install ${brew}`;
  return other;
}

/** The path of a program on the `PATH`; `null` if it is missing. */
async function whereIs(program: string): Promise<string | null> {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    const file = join(directory, program);
    if (directory !== "" && (await isThere(file))) return file;
  }
  return null;
}

/** Whether a file exists. */
async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
