import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { testCodeExecutor, type ExecutorSubject } from "@fenced/executor-testkit";
import { jupyterImage, needs } from "@fenced/test-support";
import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DockerJupyterServer, JupyterCodeExecutor } from "../../src/index.ts";
import { python } from "../support/python.ts";

const patience = { timeout: 180_000 };
const docker = new Docker();
const host = path.join(import.meta.dirname, "../fixtures/docker-host.ts");

async function containers(): Promise<string[]> {
  const found = await docker.listContainers({ all: true, filters: { label: ["io.fenced.executor=jupyter"] } });
  return found.map(({ Id }) => Id);
}

describe("on a server in Docker", needs("jupyterDocker"), () => {
  // A package that is not to be had is so at once, wherever the tests run.
  const server = new DockerJupyterServer({ baseImage: jupyterImage, dockerEnv: { PIP_NO_INDEX: "1" } });
  beforeAll(() => server.start(), 180_000);
  afterAll(() => server.stop(), 60_000);

  const subject: ExecutorSubject = {
    name: "JupyterCodeExecutor",
    create: ({ cleanupTempFiles: _, ...options }) => new JupyterCodeExecutor({ ...options, server }),
    load: (model) => JupyterCodeExecutor.fromConfig(model.config),
    takesWorkDir: false,
    hostCommand: [process.execPath, "--conditions=@fenced/source", "--import", "tsx", host],
    listResources: containers,
  };
  testCodeExecutor({ describe, it }, subject);
});

describe("a server in Docker", needs("jupyterDocker"), () => {
  it("is built from the bundled Dockerfile, shows how, and is published on 127.0.0.1 only", patience, async () => {
    const lines: string[] = [];
    // A base of another name makes another image, so that one is built indeed.
    const tag = `jupyter-${Date.now()}`;
    await docker.getImage(jupyterImage).tag({ repo: "fenced-test", tag });
    const settings = { baseImage: `fenced-test:${tag}`, onProgress: (line: string) => lines.push(line) };
    await using server = new DockerJupyterServer(settings);
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

  it("runs in a directory of this host", patience, async () => {
    const workDir = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
    await using executor = new JupyterCodeExecutor({
      server: new DockerJupyterServer({ baseImage: jupyterImage, workDir }),
    });
    await executor.executeCodeBlocks([python("open('made.txt', 'w').write('inside')")]);
    expect(await readFile(path.join(workDir, "made.txt"), "utf8")).toBe("inside");
    await executor.stop();
    await rm(workDir, { recursive: true });
  });

  it("may run an image that keeps AutoGen's contract", patience, async () => {
    const customImageName = `fenced-test:gateway-${Date.now()}`;
    const context = path.join(import.meta.dirname, "../fixtures/gateway-image");
    const build = await docker.buildImage({ context, src: ["Dockerfile", "gateway.py"] }, { t: customImageName });
    await new Promise((resolve, reject) => {
      docker.modem.followProgress(build, (error, steps) => (error ? reject(error) : resolve(steps)));
    });
    try {
      await using executor = new JupyterCodeExecutor({ server: new DockerJupyterServer({ customImageName }) });
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
      await docker.getImage(customImageName).remove();
    }
  });

  it("that cannot be started is a clear error", patience, async () => {
    await using executor = new JupyterCodeExecutor({
      server: new DockerJupyterServer({ customImageName: "no-such:image" }),
    });
    await expect(executor.start()).rejects.toThrow(/no-such:image cannot be started/);
  });

  it("that ends at once shows its last lines", patience, async () => {
    const server = new DockerJupyterServer({
      customImageName: "fenced-test:python",
      autoRemove: false,
      startTimeoutMs: 20_000,
    });
    await using executor = new JupyterCodeExecutor({ server });
    await expect(executor.start()).rejects.toThrow(/did not come up: the container ended/);
  });

  it("ends with a program that is killed", patience, async () => {
    const before = await containers();
    const program = spawn(process.execPath, ["--conditions=@fenced/source", "--import", "tsx", host, "run"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(program.stdout, "data");
    const started = (await containers()).filter((id) => !before.includes(id));
    expect(started).toHaveLength(1);
    program.kill("SIGKILL");
    await once(program, "exit");
    for (let wait = 0; wait < 100 && (await containers()).includes(started[0] ?? ""); wait += 1) await sleep(100);
    expect(await containers()).not.toContain(started[0]);
  });
});
