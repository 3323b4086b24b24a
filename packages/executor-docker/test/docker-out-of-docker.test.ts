import { chown, mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs, nightly } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DockerExecutorOptions } from "../src/index.ts";
import { docker } from "./support/docker-cli.ts";
import { nodeImage, pythonImage } from "./support/images.ts";

const repository = join(import.meta.dirname, "../../..");
const root = process.getuid?.() === 0;
const [outerName, innerName] = [`fenced-test-${process.pid}-outer`, `fenced-test-${process.pid}-inner`];
let directory = "";
let work = "";

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  work = join(directory, "work");
  await mkdir(work);
  if (root) await chown(work, 1234, 2345);
});
afterEach(async () => {
  await docker("rm", "--force", "--volumes", outerName, innerName).catch(() => {});
  await rm(directory, { recursive: true });
});

/** Runs the fixture in a container that has the daemon's socket, this repository, and `work` as `/coding`. */
async function inside(options: DockerExecutorOptions, calls: readonly unknown[], ...words: string[]): Promise<string> {
  const volumes = [`${repository}:${repository}:ro`, "/var/run/docker.sock:/var/run/docker.sock", `${work}:/coding`];
  const request = JSON.stringify({ options: { image: pythonImage, containerName: innerName, ...options }, calls });
  const flags = ["--name", outerName, "--init", "--workdir", import.meta.dirname, ...words];
  const mounts = volumes.flatMap((volume) => ["--volume", volume]);
  const program = ["node", "--import", "tsx", "--conditions=@fenced/source", "fixtures/inside-container.ts", request];
  return docker("run", ...flags, ...mounts, nodeImage, ...program);
}

const containers = async (): Promise<string> => docker("ps", "--all", "--quiet", "--filter", `name=${innerName}`);

describe("a program that itself runs in a container", { ...needs("docker"), timeout: 240_000 }, () => {
  it("shares its workDir with the executor's container through bindDir", async () => {
    const calls = [
      [
        {
          language: "bash",
          code: "mkdir data; echo written > data/made.txt; id -u; cat /proc/mounts | grep -c ' /workspace '",
        },
      ],
      [{ language: "python", code: "# filename: kept.py\nprint(open('data/made.txt').read().strip())" }],
    ];
    const said: unknown = JSON.parse(await inside({ workDir: "/coding", bindDir: work }, calls, "--rm"));
    const user = root ? 1234 : process.getuid?.();
    expect(said).toEqual({
      outputs: [`${user}\n1\n`, "written\n"],
      files: [
        { path: "data/made.txt", size: 8 },
        { path: "kept.py", size: expect.any(Number) },
      ],
    });
    expect((await readdir(work)).toSorted()).toEqual(["data", "kept.py"]);
    expect(await readFile(join(work, "data/made.txt"), "utf8")).toBe("written\n");
    expect((await stat(join(work, "data/made.txt"))).uid).toBe(user);
    expect(await containers()).toBe("");
  });

  it("gets an error if bindDir is another directory", nightly, async () => {
    const options = { workDir: "/coding", bindDir: directory };
    await expect(inside(options, [[{ language: "sh", code: "echo" }]], "--rm")).rejects.toThrow(
      /`bindDir` .* is not \/coding on the daemon's host/,
    );
    expect(await containers()).toBe("");
  });

  it("gets its files in a volume without bindDir", async () => {
    const calls = [[{ language: "bash", code: "echo made > made.txt" }]];
    const said: unknown = JSON.parse(await inside({ workDir: "/coding" }, calls, "--rm"));
    expect(said).toMatchObject({ files: [{ path: "made.txt", size: 5 }] });
    expect(await readFile(join(work, "made.txt"), "utf8")).toBe("made\n");
  });

  it("leaves no other container behind if its own is killed", async () => {
    const calls = [[{ language: "bash", code: "touch started; sleep 1000" }]];
    await inside({ workDir: "/coding", bindDir: work }, calls, "--detach");
    await expect.poll(async () => readdir(work), { timeout: 120_000 }).toContain("started");
    await docker("kill", "--signal", "KILL", outerName);
    await expect.poll(containers, { timeout: 60_000 }).toBe("");
    expect(await readdir(work)).toEqual(["started"]);
  });
});
