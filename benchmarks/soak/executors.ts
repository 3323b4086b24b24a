import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { CodeExecutor } from "@fenced/core";

const run = promisify(execFile);

/** What an executor needs to be killed again and again, and where it may leave something. */
export interface SoakSubject extends AsyncDisposable {
  /** Passed to `create` in the host program, as JSON. */
  readonly settings: object;
  /**
   * Names everything outside the host program's temporary directory and processes: containers, kernels, remote
   * directories, cgroups. Anything new after the kills was left behind.
   */
  remains(): Promise<readonly string[]>;
}

/** One executor that can be soaked. */
export interface SoakExecutor {
  /** @param soak - prefix of the names of all host programs of this soak. */
  prepare(soak: string): Promise<SoakSubject>;
  /**
   * Called in the program that will be killed.
   *
   * @param name - the host program's globally unique name, for resources that others could also have created.
   */
  create(settings: unknown, options: { readonly timeoutMs: number }, name: string): Promise<CodeExecutor>;
}

/** The executors, by their names on the command line. */
export const soakExecutors: Readonly<Record<string, SoakExecutor>> = {
  local: {
    prepare: async () => subject({}, cgroups),
    async create(_settings, options) {
      const { LocalCommandLineCodeExecutor } = await import("@fenced/executor-local");
      return new LocalCommandLineCodeExecutor(options);
    },
  },
  docker: {
    prepare: async (soak) => subject({ image: "fenced-test:python" }, () => containers(soak)),
    async create(settings, options, containerName) {
      const { DockerCommandLineCodeExecutor } = await import("@fenced/executor-docker");
      const image = text(settings, "image");
      return new DockerCommandLineCodeExecutor({ ...options, network: "none", image, containerName });
    },
  },
  jupyter: {
    prepare: async () => subject({ python: "/usr/bin/python3" }, jupyterServers),
    async create(settings, options) {
      const { JupyterCodeExecutor, LocalJupyterServer } = await import("@fenced/executor-jupyter");
      return new JupyterCodeExecutor({
        ...options,
        server: new LocalJupyterServer({ python: text(settings, "python") }),
      });
    },
  },
  ssh: {
    async prepare() {
      const { SshServer } = await import("@fenced/test-support/ssh-server");
      const server = await SshServer.start();
      const remains = () => server.remains();
      return subject({ configFile: server.configFile }, remains, () => server[Symbol.asyncDispose]());
    },
    async create(settings, options) {
      const { SshCommandLineCodeExecutor } = await import("@fenced/executor-ssh");
      return new SshCommandLineCodeExecutor({
        ...options,
        host: "fenced-test",
        configFile: text(settings, "configFile"),
      });
    },
  },
};

function subject(
  settings: object,
  remains: () => Promise<readonly string[]>,
  dispose: () => Promise<void> = async () => {},
): SoakSubject {
  return { settings, remains, [Symbol.asyncDispose]: dispose };
}

/** Control groups that executors created. */
async function cgroups(): Promise<readonly string[]> {
  const { stdout } = await run("find", ["/sys/fs/cgroup", "-maxdepth", "6", "-type", "d", "-name", "fenced-*"]);
  return stdout.split("\n").filter((line) => line !== "");
}

/** Servers and kernels of host programs: their runtime directory is in a temporary directory of this soak. */
async function jupyterServers(): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
      return /\0JUPYTER_RUNTIME_DIR=[^\0]*\/fenced-soak-/.test(`\0${environment}`) ? [`process ${pid}`] : [];
    }),
  );
  return found.flat();
}

async function containers(soak: string): Promise<readonly string[]> {
  const words = ["ps", "--all", "--filter", `name=${soak}`, "--format", "{{.Names}} {{.Status}}"];
  const { stdout } = await run("docker", words);
  return stdout.split("\n").filter((line) => line !== "");
}

function text(settings: unknown, name: string): string {
  const value: unknown = typeof settings === "object" && settings !== null ? Reflect.get(settings, name) : undefined;
  if (typeof value !== "string") throw new Error(`the settings have no ${name}`);
  return value;
}
