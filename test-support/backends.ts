/**
 * The backends that tests can run code on, and how to tell whether this machine has them.
 *
 * A test names those that it needs, and is skipped if one is missing:
 *
 *     import { needs } from "@fenced/test-support";
 *     describe("python blocks", needs("python3"), () => { ... });
 *     it("runs uv", needs("python3", "uv"), async () => { ... });
 *
 * At the end of every run the reporter shows which backends took part and which did not, why, and what to do.
 * `FENCED_REQUIRE=python3,bash npm test` makes a missing one fail the run instead; `FENCED_REQUIRE=all` requires every
 * one of them. `FENCED_WITHOUT=jupyter,chromium` leaves some out, as if they were missing, and `FENCED_WITHOUT=all,!node` all
 * but one, which is what `npm test` does. To add a backend, add an entry
 * to `detectors`.
 */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { access, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { postgresProgram } from "./postgres-program.ts";

export { testKubeconfig } from "./test-kubeconfig.ts";

export type BackendName =
  | "python3"
  | "bash"
  | "node"
  | "typescript"
  | "pwsh"
  | "uv"
  | "docker"
  | "gvisor"
  | "podman"
  | "kubernetes"
  | "gpu"
  | "jupyter"
  | "jupyter2"
  | "jupyterDocker"
  | "analysisImage"
  | "irkernel"
  | "ssh"
  | "openssl"
  | "curl"
  | "git"
  | "bubblewrap"
  | "chromium"
  | "redis"
  | "postgres"
  | "root";

export type BackendStatus =
  | { readonly available: true; readonly version: string }
  | { readonly available: false; readonly reason: string; readonly remedy: string };

export type Backends = Readonly<Record<BackendName, BackendStatus>>;

interface Detector {
  /** Throws if the backend is missing, with the reason as its message. */
  readonly version: () => Promise<string>;
  readonly remedy: string;
}

/** How long a backend may take to answer, in milliseconds: other gates of CI may be using the processors. */
const detectionMs = 30_000;

/** Images that `scripts/ci/docker.sh` creates. */
const testImages = ["fenced-test:python", "fenced-test:node"];

/** Pythons with Jupyter servers of two major versions, as `scripts/ci/jupyter.sh` installs them. */
export const jupyterPythons = {
  jupyter: "/usr/bin/python3",
  jupyter2: join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "fenced/jupyter-server-2/bin/python"),
} as const;

/** An image with a Jupyter server in it, as `scripts/ci/jupyter.sh` builds it if there is Docker. */
export const jupyterImage = "fenced-test:jupyter";

/** An image with pandas and matplotlib, as `scripts/ci/analysis-image.sh` builds it. */
const analysisImage = "fenced-test:analysis";

/** The server that tests of `executor-ssh` start. */
const sshServer = "/usr/sbin/sshd";

const detectors: Readonly<Record<BackendName, Detector>> = {
  python3: {
    version: () => firstVersion("python3", ["-c", "import venv, sys; print(sys.version)"]),
    remedy: "install Python 3.9 or newer with its venv module (Debian: apt-get install python3 python3-venv)",
  },
  bash: {
    version: () => firstVersion("bash", ["--version"]),
    remedy: "install bash (Debian: apt-get install bash)",
  },
  node: {
    version: () => firstVersion("node", ["--version"]),
    remedy: "put node on the PATH",
  },
  typescript: {
    version: detectTypeScript,
    remedy: "use Node 22.18 or newer, which strips types, or npm install -g tsx",
  },
  pwsh: {
    version: () => firstVersion("pwsh", ["-NoProfile", "-Command", "$PSVersionTable.PSVersion.ToString()"]),
    remedy: "install PowerShell 7 (learn.microsoft.com/powershell: Install PowerShell)",
  },
  uv: {
    version: () => firstVersion("uv", ["--version"]),
    remedy: "pip install uv",
  },
  docker: {
    version: () => containerEngine("docker", ["version", "--format", "{{.Server.Version}}"]),
    remedy: "as root on Debian: scripts/ci/docker.sh up (installs docker.io, starts dockerd, makes the test images)",
  },
  gvisor: {
    version: async () => {
      const runtimes = ["info", "--format", "{{json .Runtimes}}"];
      const { stdout } = await promisify(execFile)("docker", runtimes, { timeout: detectionMs });
      if (!stdout.includes('"runsc"')) throw new Error("the daemon has no runtime runsc");
      return firstVersion("runsc", ["--version"]);
    },
    remedy: "as root on Debian: scripts/ci/docker.sh up (installs runsc and registers it with the daemon)",
  },
  podman: {
    version: () => containerEngine("podman", ["--version"]),
    remedy: "as root on Debian: scripts/ci/docker.sh up (installs podman and gives it the test images)",
  },
  kubernetes: {
    version: () => firstVersion(join(import.meta.dirname, "../scripts/ci/kubernetes.sh"), ["version"]),
    remedy:
      "as root on Debian: scripts/ci/kubernetes.sh up (builds Kubernetes once, in 10 to 40 minutes, and starts it)",
  },
  gpu: {
    version: async () => {
      await firstVersion("nvidia-smi", ["--list-gpus"]);
      return firstVersion("docker", ["run", "--rm", "--gpus=all", "fenced-test:python", "nvidia-smi", "--version"]);
    },
    remedy: "take a machine with an NVIDIA GPU, its driver, Docker and the NVIDIA Container Toolkit",
  },
  jupyter: {
    version: () => firstVersion(jupyterPythons.jupyter, jupyterProbe(1)),
    remedy:
      "as root on Debian: scripts/ci/jupyter.sh up (installs jupyter-server, python3-ipykernel, python3-matplotlib)",
  },
  jupyter2: {
    version: () => firstVersion(jupyterPythons.jupyter2, jupyterProbe(2)),
    remedy: "scripts/ci/jupyter.sh up, where pip reaches an index (installs jupyter_server 2.x for the tests)",
  },
  jupyterDocker: {
    version: async () => {
      await firstVersion("docker", ["image", "inspect", "--format", "{{.Id}}", jupyterImage]);
      return firstVersion("docker", ["version", "--format", "{{.Server.Version}}"]);
    },
    remedy: "as root on Debian: scripts/ci/jupyter.sh up, where Docker answers",
  },
  analysisImage: {
    version: () => firstVersion("docker", ["image", "inspect", "--format", "{{.Id}}", analysisImage]),
    remedy: "scripts/ci/analysis-image.sh up, where Docker answers and has the image fenced-test:python",
  },
  irkernel: {
    version: () => firstVersion("R", ["--slave", "-e", 'cat(as.character(packageVersion("IRkernel")))']),
    remedy: "as root on Debian: scripts/ci/jupyter.sh up (installs r-cran-irkernel, a kernel that is not Python)",
  },
  openssl: {
    version: () => firstVersion("openssl", ["version"]),
    remedy: "as root on Debian: apt-get install openssl (makes certificates for tests over TLS)",
  },
  curl: {
    version: () => firstVersion("curl", ["--version"]),
    remedy: "install curl (Debian: apt-get install curl)",
  },
  git: {
    version: () => firstVersion("git", ["--version"]),
    remedy: "install git (Debian: apt-get install git)",
  },
  bubblewrap: {
    version: async () => {
      const version = await firstVersion("bwrap", ["--version"]);
      const namespaces = ["--unshare-user", "--unshare-pid", "--unshare-net", "--proc", "/proc"];
      const places = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"];
      await firstVersion("bwrap", [...namespaces, ...places, "/usr/bin/true"]);
      return version;
    },
    remedy:
      "as root on Debian: apt-get install bubblewrap; in a container with seccomp=unconfined and systempaths=unconfined",
  },
  chromium: {
    version: () => firstVersion("/usr/bin/chromium", ["--version"]),
    remedy: "as root on Debian: apt-get install chromium (shows the demo's page in tests)",
  },
  redis: {
    version: () => firstVersion("redis-server", ["--version"]),
    remedy: "as root on Debian: scripts/ci/databases.sh up (installs redis-server; starts nothing)",
  },
  postgres: {
    version: () => firstVersion(postgresProgram("postgres"), ["--version"]),
    remedy: "as root on Debian: scripts/ci/databases.sh up (installs postgresql; starts nothing)",
  },
  root: {
    version: async () => {
      if (process.getuid?.() !== 0) throw new Error("the tests do not run as root");
      return "user 0";
    },
    remedy: "run the tests as root (some start a Docker daemon of their own)",
  },
  ssh: {
    version: detectSsh,
    remedy: "as root on Debian: scripts/ci/ssh.sh up (installs openssh-client and openssh-server; starts nothing)",
  },
};

/**
 * Looks for all backends at once; takes as long as the slowest one.
 *
 * @param file - where to keep what was found: if the file exists, nothing is looked for. The tasks of a run share one.
 */
export async function detectBackends(file?: string): Promise<Backends> {
  if (file !== undefined && existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as Backends;
  const without = namedBackends("FENCED_WITHOUT", process.env.FENCED_WITHOUT);
  const leftOut = { available: false, reason: "FENCED_WITHOUT leaves it out", remedy: "run npm run test:all" } as const;
  const found = await Promise.all(
    Object.entries(detectors).map(
      async ([name, detector]) =>
        [name, without.some((each) => each === name) ? leftOut : await detect(detector)] as const,
    ),
  );
  const backends = Object.fromEntries(found) as Record<BackendName, BackendStatus>;
  if (file !== undefined) {
    // Several processes may find them at once.
    await writeFile(`${file}.${process.pid}`, JSON.stringify(backends));
    await rename(`${file}.${process.pid}`, file);
  }
  return backends;
}

/** The backends that `FENCED_REQUIRE` names. Throws if a name is unknown: a typo must not look like success. */
export function requiredBackends(variable: string | undefined): BackendName[] {
  return namedBackends("FENCED_REQUIRE", variable);
}

function namedBackends(variableName: string, variable: string | undefined): BackendName[] {
  const known = Object.keys(detectors) as BackendName[];
  const words = (variable ?? "").split(",").map((word) => word.trim());
  const named = (given: readonly string[]) =>
    given.map((name) => {
      const match = known.find((candidate) => candidate === name);
      if (match !== undefined) return match;
      throw new Error(
        `${variableName} names "${name}", which is not a backend. Use "all" or some of: ${known.join(", ")}.`,
      );
    });
  const except = named(words.filter((word) => word.startsWith("!")).map((word) => word.slice(1)));
  const chosen = words.includes("all") ? known : named(words.filter((word) => word !== "" && !word.startsWith("!")));
  return chosen.filter((name) => !except.includes(name));
}

async function detect({ version, remedy }: Detector): Promise<BackendStatus> {
  try {
    return { available: true, version: await version() };
  } catch (error) {
    return { available: false, reason: error instanceof Error ? error.message : String(error), remedy };
  }
}

async function detectTypeScript(): Promise<string> {
  const stripsTypes = "typescript" in process.features && process.features.typescript !== false;
  if (stripsTypes) {
    return `node ${process.versions.node}`;
  }
  return `tsx ${await firstVersion("tsx", ["--version"])}`;
}

/** Looks for client and server: tests start a server of their own on the loopback interface. */
async function detectSsh(): Promise<string> {
  await access(sshServer).catch(() => {
    throw new Error(`there is no ${sshServer}`);
  });
  await firstVersion("ssh-keygen", ["-l", "-f", "/dev/null"]).catch((error: unknown) => {
    if (error instanceof Error && /not on the PATH/.test(error.message)) throw error;
  });
  return firstVersion("sh", ["-c", "ssh -V 2>&1"]);
}

async function containerEngine(program: string, args: readonly string[]): Promise<string> {
  const version = await firstVersion(program, args);
  for (const image of testImages) await firstVersion(program, ["image", "inspect", "--format", "{{.Id}}", image]);
  return version;
}

function jupyterProbe(major: number): string[] {
  const program = [
    "import ipykernel, jupyter_server, sys",
    `if not jupyter_server.__version__.startswith("${major}."): sys.exit("jupyter_server is not ${major}.x")`,
    "print(jupyter_server.__version__, 'ipykernel', ipykernel.__version__)",
  ];
  return ["-c", program.join("\n")];
}

async function firstVersion(program: string, args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { timeout: detectionMs }).catch((error: unknown) => {
    throw new Error(whyItFailed(program, error), { cause: error });
  });
  return /\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? "unknown version";
}

function whyItFailed(program: string, error: unknown): string {
  const { code, killed, stderr } = error as { code?: unknown; killed?: boolean; stderr?: string };
  if (code === "ENOENT") return `${program} is not on the PATH`;
  if (killed === true) return `${program} did not answer within ${detectionMs / 1000} s`;
  return `${program} failed: ${stderr?.trim().split("\n").at(-1) ?? String(error)}`;
}
