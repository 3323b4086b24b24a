import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createExecutor, inspect, printed, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { nodeImage, pythonImage } from "./support/images.ts";

const containerName = `fenced-test-${process.pid}-kept`;
let directory = "";
let warnings: string[] = [];
const warned = (warning: Error & { code?: string }) => {
  if (warning.code === "FENCED_DOCKER_KEPT") warnings.push(warning.message);
};

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  warnings = [];
  process.on("warning", warned);
});
afterEach(async () => {
  process.off("warning", warned);
  await docker("rm", "--force", "--volumes", containerName).catch(() => {});
  await rm(directory, { recursive: true, force: true });
});

const state = async () => docker("inspect", "--format", "{{.State.Status}}", containerName);
/** What was killed has its name until it is reaped, and what was started has another one at first. */
const sleeping = "cat /proc/[0-9]*/comm | grep -c sleep || true";

describe("kept containers", needs("docker"), () => {
  it("autoRemove: false keeps the stopped container, and a warning names it", async () => {
    const executor = createExecutor({ containerName, autoRemove: false });
    await printed(executor, "bash", "echo in the container > /tmp/left.txt");
    await executor.stop();
    expect(await state()).toBe("exited");
    await expect
      .poll(() => warnings)
      .toEqual([expect.stringMatching(new RegExp(`${containerName} was stopped and kept`))]);
    await using again = createExecutor({ containerName, reuse: true });
    expect(await printed(again, "bash", "cat /tmp/left.txt")).toBe("in the container");
  });

  it("stopContainer: false keeps the container running, without processes that blocks left", async () => {
    const executor = createExecutor({ containerName, stopContainer: false, workDir: directory });
    await printed(executor, "bash", "sleep 1000 & echo left > /tmp/left.txt");
    await executor.stop();
    expect(await state()).toBe("running");
    await expect.poll(() => docker("exec", containerName, "sh", "-c", sleeping)).toBe("0");
    await expect.poll(() => warnings).toEqual([expect.stringMatching(new RegExp(`${containerName} keeps running`))]);

    const again = createExecutor({ containerName, reuse: true, stopContainer: false, workDir: directory });
    expect(await printed(again, "bash", "cat /tmp/left.txt; echo made > made.txt")).toBe("left");
    expect(await again.files.list()).toEqual([{ path: "made.txt", size: 5 }]);
    await again.stop();
    const last = createExecutor({ containerName, reuse: true, workDir: directory });
    expect(await printed(last, "bash", "cat made.txt")).toBe("made");
    await last.stop();
    expect(await docker("ps", "--all", "--quiet", "--filter", `name=${containerName}`)).toBe("");
  });

  it("stopContainer: false leaves no processes behind in an image without Python, where no supervisor ends them", async () => {
    const options = { image: nodeImage, containerName, stopContainer: false, workDir: directory };
    const executor = createExecutor(options);
    await printed(executor, "sh", "sleep 1000 >/dev/null 2>&1 & setsid sleep 1000 >/dev/null 2>&1 & echo");
    await expect.poll(() => printed(executor, "sh", sleeping)).toBe("2");
    await executor.stop();
    expect(await state()).toBe("running");
    const again = createExecutor({ ...options, reuse: true, stopContainer: true });
    await expect.poll(() => printed(again, "sh", sleeping)).toBe("0");
    await again.stop();
  });

  it("a container without a workDir keeps its files in its own volume", async () => {
    const executor = createExecutor({ containerName, stopContainer: false });
    await executor.files.write("data/kept.txt", "kept");
    expect(await printed(executor, "bash", "cat data/kept.txt; echo more >> data/kept.txt")).toBe("kept");
    await executor.stop();
    await using again = createExecutor({ containerName, reuse: true });
    expect(await printed(again, "bash", "cat data/kept.txt")).toBe("keptmore");
  });

  it.each([
    ["with", pythonImage],
    ["without", nodeImage],
  ])("restart() ends the blocks' processes and keeps the container, %s Python", async (_, image) => {
    const executor = createExecutor({ image, containerName, stopContainer: false, workDir: directory });
    await printed(executor, "sh", "(sleep 1000 & setsid sleep 1000 &) >/dev/null 2>&1; echo");
    const id = await inspect(executor, ".Id");
    await executor.restart();
    await expect.poll(() => printed(executor, "sh", sleeping)).toBe("0");
    expect(await inspect(executor, ".Id")).toBe(id);
    await executor.stop();
  });

  it("a container that somebody else created is used, but neither stopped nor removed", async () => {
    await docker(
      "run",
      "--detach",
      "--name",
      containerName,
      "--volume",
      `${directory}:/workspace`,
      pythonImage,
      "sleep",
      "1000",
    );
    const executor = createExecutor({ containerName, reuse: true, workDir: directory });
    expect(await printed(executor, "bash", "id -u; echo made > made.txt")).toBe("0");
    const result = await executor.executeCodeBlocks([{ language: "bash", code: "sleep 1000" }], { timeoutMs: 1000 });
    expect(result.timedOut).toBe(true);
    await run(executor, "bash", "sleep 2000 & echo");
    await executor.stop();
    expect(await state()).toBe("running");
    await expect.poll(() => docker("exec", containerName, "sh", "-c", sleeping)).toBe("1");
    expect(await docker("exec", containerName, "sh", "-c", "ls /tmp; ls /workspace")).toBe("made.txt");
  });

  it("a container with a fake Python cannot make the executor connect to a socket of this host", async () => {
    const hello = "uid 0\ngid 0\nprobe none\nsocket trap.sock";
    const frame = (type: number, text: string) =>
      Buffer.concat([Buffer.from([0, 0, 0, text.length + 5, type, 0, 0, 0, 0]), Buffer.from(text)]);
    const greeting = Buffer.concat([Buffer.from("FENCED1\n"), frame(16, hello), frame(16, hello)]);
    await writeFile(join(directory, "greeting"), greeting);
    // 8 bytes: the host's greeting.
    const program = "#!/bin/sh\ncd /workspace; cat greeting; head -c 8 >/dev/null\n";
    await writeFile(join(directory, "python3"), program, { mode: 0o755 });
    const volumes = [`${directory}:/workspace`, `${directory}/python3:/usr/local/bin/python3:ro`];
    const flags = volumes.flatMap((volume) => ["--volume", volume]);
    await docker("run", "--detach", "--name", containerName, ...flags, pythonImage, "sleep", "1000");
    let visits = 0;
    const trap = createServer((socket) => {
      visits += 1;
      socket.destroy();
    });
    await once(trap.listen(join(directory, "trap.sock")), "listening");
    try {
      const executor = createExecutor({ containerName, reuse: true, workDir: directory });
      await expect(executor.start()).rejects.toThrow(/supervisor ended/);
      expect(visits).toBe(0);
    } finally {
      await promisify(trap.close.bind(trap))();
    }
  });

  it("reuse creates the container if there is none", async () => {
    await using executor = createExecutor({ containerName, reuse: true });
    expect(await printed(executor, "python", "print(1)")).toBe("1");
    expect(await inspect(executor, ".Name")).toBe(`/${containerName}`);
  });
});
