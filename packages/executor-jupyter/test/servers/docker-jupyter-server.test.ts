import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { hostFunction, loadComponent } from "@fenced/core";
import { findDaemon, type DockerClient } from "@fenced/docker-daemon";
import { testCodeExecutor, type ExecutorSubject } from "@fenced/executor-testkit";
import { backend, jupyterImage, needs, variant } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DockerJupyterServer, JupyterCodeExecutor } from "../../src/index.ts";
import { python } from "../support/python.ts";

const patience = { timeout: 180_000 };
let docker: DockerClient;
beforeAll(async () => {
  if (backend("jupyterDocker").available) ({ docker } = await findDaemon(undefined));
});
const hostCommand = await bundledCommand(path.join(import.meta.dirname, "../fixtures/docker-host.ts"));

/** Tells the containers of this file apart from those of other tests that run at the same time. */
const labels = { "fenced-test.file": "docker-jupyter-server" };

async function containers(): Promise<string[]> {
  const label = ["io.fenced.executor=jupyter", "fenced-test.file=docker-jupyter-server"];
  const found = await docker.listContainers({ all: true, filters: { label } });
  return found.map(({ Id }) => Id);
}

describe("on a server in Docker", needs("jupyterDocker"), () => {
  // Makes pip give up on a missing package at once, wherever the tests run.
  const server = new DockerJupyterServer({ baseImage: jupyterImage, labels, env: { PIP_NO_INDEX: "1" } });
  beforeAll(() => server.start(), 180_000);
  afterAll(() => server.stop(), 120_000);

  const subject: ExecutorSubject = {
    name: "JupyterCodeExecutor",
    create: ({ cleanupTempFiles: _, network, ...options }) => {
      const own =
        network === undefined ? server : new DockerJupyterServer({ baseImage: jupyterImage, labels, network });
      return new JupyterCodeExecutor({ ...options, server: own });
    },
    load: (model) => loadComponent(model, { importModule: async () => ({ JupyterCodeExecutor }) }),
    takesWorkDir: false,
    takesNetworkPolicy: true,
    hostCommand,
    listResources: containers,
  };
  testCodeExecutor(
    { describe, it, afterAll },
    subject,
    // Its processes and its network are a container's; host functions have a test below.
    variant("network policy"),
  );
});

describe("a server in Docker", needs("jupyterDocker"), () => {
  it("lets cells and shells call host functions", patience, async () => {
    const double = hostFunction({
      name: "double",
      description: "Doubles.",
      input: { type: "object", properties: { value: { type: "number" } }, required: ["value"] },
      execute: ({ value }) => Number(value) * 2,
    });
    await using server = new DockerJupyterServer({ baseImage: jupyterImage, labels });
    await using executor = new JupyterCodeExecutor({ server, functions: [double] });
    const { output } = await executor.executeCodeBlocks([
      python("from functions import double\nprint(double(21))"),
      { language: "sh", code: `functions double '{"value": 4}'` },
    ]);
    expect(output).toBe("42\n8\n");
  });

  it("is built from the bundled Dockerfile with progress, and is published on 127.0.0.1 only", patience, async () => {
    const lines: string[] = [];
    // A base image with a new name ensures that an image is built.
    const tag = `jupyter-${Date.now()}`;
    await docker.getImage(jupyterImage).tag({ repo: "fenced-test", tag });
    const settings = { baseImage: `fenced-test:${tag}`, labels, onProgress: (line: string) => lines.push(line) };
    await using server = new DockerJupyterServer({ ...settings, network: "open" });
    await using executor = new JupyterCodeExecutor({ server });
    const before = await containers();
    const { output } = await executor.executeCodeBlocks([python("import os; print(os.path.exists('/.dockerenv'))")]);
    expect(output).toBe("True\n");
    const [id = ""] = (await containers()).filter((each) => !before.includes(each));
    const { HostConfig, NetworkSettings } = await docker.getContainer(id).inspect();
    expect(JSON.stringify(HostConfig.PortBindings)).toContain('"HostIp":"127.0.0.1"');
    expect(NetworkSettings.Ports["8888/tcp"]?.map(({ HostIp }) => HostIp)).toEqual(["127.0.0.1"]);
    const { Config } = await docker.getContainer(id).inspect();
    await executor.stop();
    await server.stop();
    expect(await containers()).not.toContain(id);
    expect(lines.join("\n")).toMatch(/^Step 1[^]*Successfully tagged fenced-jupyter:[0-9a-f]{16}$/);
    for (const image of [Config.Image, settings.baseImage]) await docker.getImage(image).remove();
  });

  it("is hardened by default, and so is its kernel", patience, async () => {
    const before = await containers();
    const server = new DockerJupyterServer({
      baseImage: jupyterImage,
      labels,
      memoryBytes: 536_870_912,
      pidsLimit: 200,
    });
    await using executor = new JupyterCodeExecutor({ server });
    const code = [
      "import os",
      "status = dict(line.rstrip().split(':\\t', 1) for line in open('/proc/self/status') if ':\\t' in line)",
      "print(os.getuid(), status['CapEff'], status['CapBnd'], status['NoNewPrivs'])",
      "open('made.txt', 'w').write('made'); open(os.path.expanduser('~/made.txt'), 'w').write('made')",
      "print(os.path.exists('made.txt'))",
    ];
    const { output } = await executor.executeCodeBlocks([python(code.join("\n"))]);
    expect(output).toBe("65534 0000000000000000 0000000000000000 1\nTrue\n");
    const [id = ""] = (await containers()).filter((each) => !before.includes(each));
    expect((await docker.getContainer(id).inspect()).HostConfig).toMatchObject({
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      Memory: 536_870_912,
      MemorySwap: 536_870_912,
      PidsLimit: 200,
      Privileged: false,
    });
  });

  it("works with a read-only root filesystem", patience, async () => {
    const server = new DockerJupyterServer({ baseImage: jupyterImage, labels, readOnlyRootFilesystem: true });
    await using executor = new JupyterCodeExecutor({ server });
    const code =
      "open('made.txt', 'w').write('made')\ntry: open('/usr/made.txt', 'w')\nexcept OSError as error: print(error.strerror)";
    const { output } = await executor.executeCodeBlocks([python(code)]);
    expect(output).toBe("Read-only file system\n");
  });

  it("refuses hosts other than package indexes by default, and has no network of its own", patience, async () => {
    const before = await containers();
    await using executor = new JupyterCodeExecutor({
      server: new DockerJupyterServer({ baseImage: jupyterImage, labels, env: { NO_PROXY: "given" } }),
    });
    const code = `import os, urllib.request
print(os.listdir("/sys/class/net"), os.environ["NO_PROXY"], os.environ["https_proxy"][:17], "FENCED_LEASHED" in os.environ)
try:
    urllib.request.urlopen("https://example.com/")
except OSError as error:
    print(error)`;
    const result = await executor.executeCodeBlocks([python(code)]);
    const reason = "example.com is not in this executor's network policy";
    expect(result.output).toBe(
      `['lo'] given http://127.0.0.1: False\n<urlopen error Tunnel connection failed: 403 ${reason}>\n`,
    );
    expect(result.network).toMatchObject([{ allowed: false, host: "example.com", port: 443, reason }]);
    const [id = ""] = (await containers()).filter((each) => !before.includes(each));
    const { HostConfig, NetworkSettings } = await docker.getContainer(id).inspect();
    expect([HostConfig.NetworkMode, NetworkSettings.Ports]).toEqual(["none", {}]);
  });

  it("without a network is replaced when code kills the program that carries its connections", patience, async () => {
    const server = new DockerJupyterServer({ baseImage: jupyterImage, labels, network: "none" });
    await using executor = new JupyterCodeExecutor({ server });
    const look = `import os
print(os.listdir("/sys/class/net"), [name for name in os.environ if "PROXY" in name.upper()])`;
    expect(await executor.executeCodeBlocks([python(look)])).toMatchObject({ output: "['lo'] []\n" });
    const code = `import os
for process in os.listdir("/proc"):
    if process.isdigit() and b"_fenced_supervisor" in open(f"/proc/{process}/cmdline", "rb").read():
        os.kill(int(process), 9)
import time
time.sleep(60)`;
    const lost = await executor.executeCodeBlocks([python(code)]).catch((error: unknown) => error);
    expect(lost).toMatchObject({ name: "BackendUnavailableError" });
    expect(await executor.executeCodeBlocks([python("print(1)")])).toMatchObject({ output: "1\n", stateLost: true });
  });

  it("rejects options that contradict its network policy", () => {
    const network = { allow: ["example.com"] };
    expect(() => new DockerJupyterServer({ network, dockerNetwork: "mine" })).toThrow(
      /"dockerNetwork".* needs .*"open"/,
    );
    expect(() => new DockerJupyterServer({ network: "none", stopContainer: false })).toThrow(/"stopContainer".* needs/);
    // @ts-expect-error -- a network of the daemon
    expect(() => new DockerJupyterServer({ network: "mine" })).toThrow(/use `dockerNetwork`/);
  });

  it("can work in a directory of this host", patience, async () => {
    const workDir = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
    await using executor = new JupyterCodeExecutor({
      server: new DockerJupyterServer({ baseImage: jupyterImage, labels, workDir }),
    });
    await executor.executeCodeBlocks([python("open('made.txt', 'w').write('inside')")]);
    expect(await readFile(path.join(workDir, "made.txt"), "utf8")).toBe("inside");
    await executor.stop();
    await rm(workDir, { recursive: true });
  });

  it("can run an image that follows AutoGen's contract", patience, async () => {
    const image = `fenced-test:gateway-${Date.now()}`;
    const context = path.join(import.meta.dirname, "../fixtures/gateway-image");
    const build = await docker.buildImage({ context, src: ["Dockerfile", "gateway.py"] }, { t: image });
    await new Promise((resolve, reject) => {
      docker.modem.followProgress(build, (error, steps) => (error ? reject(error) : resolve(steps)));
    });
    try {
      await using executor = new JupyterCodeExecutor({ server: new DockerJupyterServer({ image, labels }) });
      await executor.executeCodeBlocks([python("import getpass; who = getpass.getuser()")]);
      const result = await executor.executeCodeBlocks([
        python("open('made.txt', 'w').write(who)"),
        { language: "bash", code: "cat made.txt" },
      ]);
      expect(result).toMatchObject({ exitCode: 0, output: "8\nsomebody" });
      expect(Buffer.from(await executor.files.read("made.txt")).toString()).toBe("somebody");
      const endless = await executor.executeCodeBlocks([python("while True: pass")], { timeoutMs: 1500 });
      expect(endless).toMatchObject({ timedOut: true, stateLost: false });
      await executor.stop();
    } finally {
      await docker.getImage(image).remove();
    }
  });

  it("that outlives its program has an input, too, for the sake of the machine's /dev/null", patience, async () => {
    const containerName = `fenced-test-${randomUUID()}`;
    const options = { baseImage: jupyterImage, labels, containerName, network: "open", stopContainer: false } as const;
    const server = new DockerJupyterServer(options);
    try {
      await using executor = new JupyterCodeExecutor({ server });
      expect((await executor.executeCodeBlocks([python("print(1)")])).output).toBe("1\n");
      await executor.stop();
      await server.stop();
      const { Config, State } = await docker.getContainer(containerName).inspect();
      expect([Config.OpenStdin, State.Running]).toEqual([true, true]);
    } finally {
      await docker.getContainer(containerName).remove({ force: true });
    }
  });

  it("that cannot be started causes a clear error", patience, async () => {
    await using executor = new JupyterCodeExecutor({
      server: new DockerJupyterServer({ image: "127.0.0.1:9/no-such:image" }),
    });
    await expect(executor.start()).rejects.toThrow(/no-such:image" could not be pulled/);
  });

  it("that ends at once causes an error that says so", patience, async () => {
    const server = new DockerJupyterServer({
      image: "fenced-test:python",
      autoRemove: false,
      startTimeoutMs: 60_000,
    });
    await using executor = new JupyterCodeExecutor({ server });
    await expect(executor.start()).rejects.toThrow(/did not start: the container ended/);
  });

  it("ends when its host program is killed", patience, async () => {
    const before = await containers();
    const [node, ...words] = hostCommand;
    const program = spawn(node, [...words, "run"], { stdio: ["ignore", "pipe", "inherit"] });
    await once(program.stdout, "data");
    const started = (await containers()).filter((id) => !before.includes(id));
    expect(started).toHaveLength(1);
    program.kill("SIGKILL");
    await once(program, "exit");
    await expect.poll(containers).not.toContain(started[0]);
  });
});
