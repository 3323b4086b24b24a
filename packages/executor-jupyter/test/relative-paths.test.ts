import { existsSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { jupyterImage, needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DockerJupyterServer, JupyterCodeExecutor } from "../src/index.ts";
import { python } from "./support/python.ts";

describe("relative paths mean the same directory whatever the process changes to", () => {
  const before = process.cwd();
  let directory = "";
  beforeEach(async () => {
    directory = await realpath(await mkdtemp(path.join(tmpdir(), "fenced-test-")));
    for (const name of ["one", "two"]) await mkdir(path.join(directory, name));
    process.chdir(path.join(directory, "one"));
  });
  afterEach(async () => {
    process.chdir(before);
    await rm(directory, { recursive: true });
  });

  it("on a local server", needs("jupyter"), async () => {
    await using executor = new JupyterCodeExecutor({ workDir: "work", outputDir: "out" });
    process.chdir(path.join(directory, "two"));
    await executor.executeCodeBlocks([python("open('made.txt', 'w').close()")]);
    expect(existsSync(path.join(directory, "one/work/made.txt"))).toBe(true);
    expect(existsSync(path.join(directory, "one/out"))).toBe(true);
    expect(executor.dumpComponent().config).toMatchObject({ workDir: "work", outputDir: "out" });
  });

  it("on a server in Docker", { ...needs("jupyterDocker"), timeout: 180_000 }, async () => {
    await using server = new DockerJupyterServer({ baseImage: jupyterImage, network: "none", workDir: "work" });
    process.chdir(path.join(directory, "two"));
    await using executor = new JupyterCodeExecutor({ server });
    await executor.executeCodeBlocks([python("open('made.txt', 'w').close()")]);
    expect(existsSync(path.join(directory, "one/work/made.txt"))).toBe(true);
    expect(server.toJSON()).toMatchObject({ workDir: "work" });
  });
});
