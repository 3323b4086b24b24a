import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { needs, nightly } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DockerCommandLineCodeExecutor } from "../src/index.ts";
import { createExecutor, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { startForeignContainer } from "./support/foreign-container.ts";

/** Runs code that stops the supervisor once its own block has ended. */
async function stopSupervisor(executor: DockerCommandLineCodeExecutor): Promise<void> {
  // The shepherd's parent is the supervisor.
  const code = '(sleep 1; kill -STOP "$(cut -d" " -f4 /proc/$SHEPHERD/stat)") &';
  await run(executor, "bash", `SHEPHERD=$PPID\n${code}\nsleep 0.1`);
  // Not with `docker exec`, whose own start the code could stop as well.
  while (!/^T/m.test(await docker("top", executor.containerName, "-eo", "stat,pid"))) await sleep(100);
}

/** The outcome of a call: its value, or that the backend is unavailable. A call that hangs runs into the time limit. */
async function outcome<T>(call: () => Promise<T>): Promise<T | "unavailable"> {
  try {
    return await call();
  } catch (error) {
    if (BackendUnavailableError.isInstance(error)) return "unavailable";
    throw error;
  }
}

const containerName = `fenced-test-stopped-${process.pid}`;
let host: string;
let workDir: string;

const places: readonly [string, () => DockerCommandLineCodeExecutor][] = [
  ["a temporary directory", () => createExecutor()],
  ["a bound workDir", () => createExecutor({ workDir })],
  // A container that somebody else created does not bind `workDir`, so files travel through the supervisor.
  ["a volume", () => createExecutor({ containerName, reuse: true, workDir })],
];

describe.each(places)(
  "a supervisor that code has stopped, with %s",
  { ...needs("docker"), timeout: 120_000 },
  (place, create) => {
    const foreign = place === "a volume";
    // A volume's calls wait for the supervisor, up to their time limit.
    const slow = foreign ? nightly : {};
    // A container that somebody else created stays, and stop() says that something may be left in it.
    const stopped = foreign ? "unavailable" : undefined;
    /** A call that found the supervisor lost has already said so; stop() then need not say it again. */
    const expectStop = async (executor: DockerCommandLineCodeExecutor, before: string): Promise<void> => {
      const allowed = before === "unavailable" ? [stopped, undefined] : [stopped];
      expect(allowed).toContain(await outcome(() => executor.stop()));
    };
    beforeEach(async () => {
      host = await mkdtemp(join(tmpdir(), "fenced-test-"));
      workDir = await mkdtemp(join(tmpdir(), "fenced-test-"));
      if (foreign) await startForeignContainer(containerName, { options: ["--volume", "/workspace"] });
    });
    afterEach(async () => {
      if (foreign) await docker("rm", "--force", "--volumes", containerName);
      for (const directory of [host, workDir]) await rm(directory, { recursive: true });
    });

    it("does not make upload() hang", slow, async () => {
      await writeFile(join(host, "up.txt"), "up");
      const executor = create();
      await executor.start();
      await stopSupervisor(executor);
      const uploaded = await outcome(async () => {
        await executor.files.upload([join(host, "up.txt")]);
        return Buffer.from(await executor.files.read("up.txt")).toString();
      });
      expect(["up", "unavailable"]).toContain(uploaded);
      await expectStop(executor, uploaded);
    });

    it("does not make download() hang", slow, async () => {
      const executor = create();
      await executor.files.write("given.txt", "given");
      await stopSupervisor(executor);
      const downloaded = await outcome(async () => {
        const [copy = ""] = await executor.files.download(["given.txt"], join(host, "down"));
        return readFile(copy, "utf8");
      });
      expect(["given", "unavailable"]).toContain(downloaded);
      await expectStop(executor, downloaded);
    });

    it("does not make stop() hang, which removes the executor's own container", async () => {
      const executor = create();
      await executor.start();
      const { containerName: name } = executor;
      await stopSupervisor(executor);
      // On a slow machine, its loss may have been noticed and reported before.
      expect([stopped, undefined]).toContain(await outcome(() => executor.stop()));
      const left = await docker("ps", "--all", "--filter", `name=${name}`, "--format", "{{.Names}}");
      expect(left).toBe(foreign ? name : "");
    });
  },
);

describe(
  "a supervisor that code has stopped, in a container of somebody else",
  { ...needs("docker"), timeout: 120_000 },
  () => {
    it("ends everything that it started, and itself, if it continues after stop()", async () => {
      await startForeignContainer(containerName);
      try {
        const processes = () => docker("top", containerName, "-eo", "pid,args");
        const before = await processes();
        const executor = createExecutor({ containerName, reuse: true });
        await run(executor, "bash", "sleep 1001 &");
        await stopSupervisor(executor);
        expect(await outcome(() => executor.stop())).toBe("unavailable");
        expect(await processes()).toContain("sleep 1001");
        await docker("exec", containerName, "sh", "-c", "kill -CONT -1");
        while ((await processes()) !== before) await sleep(100);
        expect(await processes()).toBe(before);
      } finally {
        await docker("rm", "--force", "--volumes", containerName);
      }
    });
  },
);
