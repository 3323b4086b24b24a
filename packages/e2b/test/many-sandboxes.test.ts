import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs, nightly } from "@fenced/test-support";
import { RateLimitError, Sandbox } from "e2b";
import { describe, expect, it, vi } from "vitest";
import { startServer } from "./support/start-server.ts";

const run = promisify(execFile);
/** How many sandboxes are created and killed one after another, how many of them at the same time, and after how many to count first. */
const [creates, atOnce, warmUp] = [1000, 8, 100];

/** What one more sandbox could leave in this process, or on this machine. */
interface Remains {
  readonly files: number;
  readonly children: number;
  readonly directories: number;
  readonly heap: number;
}

async function remains(directory: string): Promise<Remains> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const [files, children, directories] = await Promise.all([
    readdir("/proc/self/fd"),
    readFile(`/proc/self/task/${process.pid}/children`, "utf8"),
    readdir(directory),
  ]);
  return {
    files: files.length,
    children: children.split(" ").filter((each) => each !== "").length,
    directories: directories.length,
    heap: process.memoryUsage().heapUsed,
  };
}

async function containers(label: string): Promise<number> {
  const { stdout } = await run("docker", ["ps", "--all", "--quiet", "--filter", `label=fenced.test=${label}`]);
  return stdout.split("\n").filter((line) => line !== "").length;
}

describe("many sandboxes", { ...nightly, timeout: 1_800_000 }, () => {
  it("work at the same time, each by itself, and leave nothing", needs("docker"), async () => {
    const label = randomUUID();
    await using server = await startServer({
      templates: {
        base: () =>
          new DockerCommandLineCodeExecutor({
            image: "fenced-test:python",
            workspacePath: "/home/user",
            labels: { "fenced.test": label },
          }),
      },
      maxSandboxes: 100,
      startTimeoutMs: 1_200_000,
    });
    const client = { ...server.client, requestTimeoutMs: 1_200_000, timeoutMs: 3_600_000 };
    const sandboxes = await Promise.all(Array.from({ length: 100 }, () => Sandbox.create("base", client)));
    expect(await containers(label)).toBe(100);
    await expect(Sandbox.create("base", client)).rejects.toBeInstanceOf(RateLimitError);
    const outputs = await Promise.all(
      sandboxes.map(async ({ files, commands }, index) => {
        await files.write("number.txt", `${index}`);
        const { stdout } = await commands.run("cat number.txt; ls | wc -l", { timeoutMs: 600_000 });
        return stdout;
      }),
    );
    expect(outputs).toEqual(sandboxes.map((_, index) => `${index}1\n`));
    expect(await Promise.all(sandboxes.map((each) => each.kill()))).toEqual(sandboxes.map(() => true));
    expect(await containers(label)).toBe(0);
  });

  it("leave nothing when a thousand are created and killed", needs("python3", "bubblewrap"), async ({ annotate }) => {
    const directory = await mkdtemp(path.join(tmpdir(), "many-sandboxes-"));
    vi.stubEnv("TMPDIR", directory);
    try {
      await using server = await startServer({
        templates: { base: () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" }) },
      });
      const client = { ...server.client, requestTimeoutMs: 300_000 };
      /** Kills it while all kinds of requests to it are in progress. */
      const use = async (index: number): Promise<void> => {
        const sandbox = await Sandbox.create("base", client);
        await sandbox.files.write("file.txt", "text");
        const { stdout } = await sandbox.commands.run("cat file.txt", { timeoutMs: 300_000 });
        expect(stdout).toBe("text");
        const [isTerminal, isWatched] = [index % 3 === 0, index % 5 === 0];
        const terminal = isTerminal
          ? await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} })
          : await sandbox.commands.run("sleep 600", { background: true });
        if (isWatched) await sandbox.files.watchDir(".", () => {});
        const ended = terminal.wait().then(
          () => "ended",
          () => "ended",
        );
        expect(await sandbox.kill()).toBe(true);
        expect(await ended).toBe("ended");
      };
      const useMany = async (count: number): Promise<void> => {
        let next = 0;
        const some = async (): Promise<void> => {
          while (next < count) await use(next++);
        };
        await Promise.all(Array.from({ length: atOnce }, some));
      };
      await useMany(warmUp);
      const before = await remains(directory);
      await useMany(creates - warmUp);
      const after = await remains(directory);
      await annotate(`before: ${JSON.stringify(before)}, after: ${JSON.stringify(after)}`);
      // Connections of the client's pool and of the server come and go.
      expect(after.files - before.files).toBeLessThan(3 * atOnce);
      expect(after.children).toBeLessThanOrEqual(before.children);
      expect(after.directories).toBeLessThanOrEqual(before.directories);
      expect(after.heap - before.heap).toBeLessThan(30_000_000);
    } finally {
      vi.unstubAllEnvs();
      await rm(directory, { recursive: true });
    }
  });
});
