import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createExecutor, printed } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { cleanDockerEnvironment, startFailure, type DockerEnvironment } from "./support/docker-environment.ts";
import { startSshServer, type SshServer } from "./support/ssh-server.ts";

describe("a daemon behind ssh", { ...needs("docker", "ssh"), timeout: 120_000 }, () => {
  let directory = "";
  let server: SshServer;
  let environment: DockerEnvironment;
  const path = process.env["PATH"] ?? "";
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
    server = await startSshServer(directory);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  beforeEach(async () => {
    environment = await cleanDockerEnvironment();
    process.env["PATH"] = `${server.programs}:${path}`;
  });
  afterEach(async () => {
    await environment.restore();
  });

  const address = (): string => `ssh://127.0.0.1:${server.port}`;

  it("runs blocks, and leaves no ssh process and no container", async () => {
    process.env["DOCKER_HOST"] = address();
    const workDir = join(directory, "work");
    await mkdir(workDir, { recursive: true });
    const executor = createExecutor({ workDir });
    const many = "import sys\nfor line in range(100_000): print(line)\nopen('made.txt', 'w').write('made')";
    expect((await printed(executor, "python", many)).split("\n")).toHaveLength(100_000);
    expect(await readFile(join(workDir, "made.txt"), "utf8")).toBe("made");
    const stopped = await executor.executeCodeBlocks([{ language: "bash", code: "sleep 1000" }], { timeoutMs: 500 });
    expect(stopped.timedOut).toBe(true);
    await executor.stop();
    expect(await docker("ps", "--all", "--quiet", "--filter", `name=${executor.containerName}`)).toBe("");
    await expect.poll(async () => connections(server.port)).toBe("");
  });

  it("is reached as the user and at the socket that the address names", async () => {
    const there = `ssh://${userInfo().username}@127.0.0.1:${server.port}/var/run/docker.sock`;
    await using executor = createExecutor({ docker: there });
    expect(await printed(executor, "python", "print(42)")).toBe("42");
  });

  it("that cannot be reached causes a clear error in the words of ssh", async () => {
    expect(await startFailure({ docker: "ssh://127.0.0.1:9" })).toMatch(
      /the option `docker`: ssh:.*Connection refused/,
    );
    const missing = `${address()}/nowhere/docker.sock`;
    expect(await startFailure({ docker: missing })).toMatch(/nowhere\/docker\.sock/);
    process.env["PATH"] = `${server.strangerPrograms}:${path}`;
    expect(await startFailure({ docker: address() })).toMatch(/Host key verification failed/);
    process.env["PATH"] = "/nowhere";
    expect(await startFailure({ docker: address() })).toMatch(/ssh could not be started: .*ENOENT/);
  });
});

/** The `ssh` programs that are connected to a port. */
async function connections(port: number): Promise<string> {
  const { stdout } = await promisify(execFile)("pgrep", ["--full", "--list-full", `^/usr/bin/ssh .*-p ${port} `]).catch(
    () => ({ stdout: "" }),
  );
  return stdout.trim();
}
