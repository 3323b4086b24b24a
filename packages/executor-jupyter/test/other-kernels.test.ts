import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { codeResultForModel, InvalidInputError } from "@fenced/core";
import { needs, nightly } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { JupyterExecutorOptions } from "../src/index.ts";
import { KernelApi } from "./support/kernel-api.ts";
import { sharedServer } from "./support/local-server.ts";

const patience = { timeout: 120_000 };
const r = (code: string) => ({ language: "R", code });
const ir = (options: JupyterExecutorOptions = {}) => ({ ...options, kernelName: "ir" });

describe("an R kernel", needs("jupyter", "irkernel"), () => {
  // R leaves its temporary directory behind when it is killed.
  let temporary = "";
  beforeAll(async () => {
    temporary = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
    vi.stubEnv("TMPDIR", temporary);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await rm(temporary, { recursive: true, force: true });
  });
  const { executor: create, address } = sharedServer();

  it("runs only R, and keeps state", patience, async () => {
    await using executor = create(ir());
    await executor.start();
    expect(executor.capabilities).toMatchObject({ languages: ["r"], functions: [], stateful: true });
    await executor.executeCodeBlocks([r("x <- 6")]);
    const result = await executor.executeCodeBlocks([r("x * 7"), r("cat('on', 'stdout\\n'); message('on stderr')")]);
    expect(result).toMatchObject({ exitCode: 0, stdout: "[1] 42\non stdout\n" });
    expect(result.stderr).toMatch(/^on stderr\n/);
    const bash = await executor.executeCodeBlocks([{ language: "bash", code: "echo hello" }]);
    expect(bash).toMatchObject({ exitCode: 1 });
    expect(bash.output).toMatch(/unknown language "bash".*\br\b/);
  });

  it("reports an error, keeps the output before it, and runs no later block", patience, async () => {
    await using executor = create(ir());
    const result = await executor.executeCodeBlocks([r("cat('before\\n'); stop('the reason')"), r("cat('later')")]);
    expect(result.exitCode).toBe(1);
    expect(result.output).toMatch(/^before\nError [^]*the reason/);
    expect(result.blocks).toHaveLength(1);
  });

  it("shows plots", patience, async () => {
    await using executor = create(ir());
    const { displays } = await executor.executeCodeBlocks([r("plot(1:10)")]);
    const image = displays[0]?.data["image/png"];
    expect(image instanceof Uint8Array && Buffer.from(image.subarray(1, 4)).toString()).toBe("PNG");
    expect(displays[0]?.files[0]).toMatch(/display-[0-9a-f-]+\.png$/);
  });

  it("shows help", patience, async () => {
    await using executor = create(ir());
    const { text } = codeResultForModel(await executor.executeCodeBlocks([r("?sum")]), 1);
    expect(text).toContain("Sum of Vector Elements");
  });

  it("loses variables at restart, but keeps files", { ...patience, ...nightly }, async () => {
    await using executor = create(ir());
    await executor.executeCodeBlocks([r("x <- 1; writeLines('kept', 'file.txt')")]);
    await executor.restart();
    const result = await executor.executeCodeBlocks([r("cat(exists('x'), readLines('file.txt'))")]);
    expect(result.output).toBe("FALSE kept");
    expect(await executor.files.list()).toEqual([{ path: "file.txt", size: 5 }]);
  });

  it("is interrupted at the time limit, and keeps its variables", { ...patience, ...nightly }, async () => {
    await using executor = create(ir());
    await executor.executeCodeBlocks([r("x <- 1")]);
    const result = await executor.executeCodeBlocks([r("Sys.sleep(300)")], { timeoutMs: 1500 });
    expect(result).toMatchObject({ exitCode: 124, timedOut: true, stateLost: false });
    expect((await executor.executeCodeBlocks([r("cat(x)")])).output).toBe("1");
  });

  it("that dies is reported, and replaced for the next call", { ...patience, ...nightly }, async () => {
    await using executor = create(ir());
    await executor.executeCodeBlocks([r("x <- 1")]);
    const result = await executor.executeCodeBlocks([r("tools::pskill(Sys.getpid(), 9)")]);
    expect(result).toMatchObject({ exitCode: 1, stateLost: true });
    expect((await executor.executeCodeBlocks([r("cat(exists('x'))")])).output).toBe("FALSE");
  });

  it("reads stdin line by line, and then empty lines", patience, async () => {
    await using executor = create(ir());
    const code = r("cat(readline(), nchar(readline()))");
    expect((await executor.executeCodeBlocks([code], { stdin: "one\n" })).output).toBe("one 0");
    expect((await executor.executeCodeBlocks([code])).output).toBe(" 0");
  });

  it("rejects environment variables, and says so", { ...patience, ...nightly }, async () => {
    await using executor = create(ir({ env: { A: "1" } }));
    const result = await executor.executeCodeBlocks([r("cat(1)")]);
    expect(result.exitCode).toBe(1);
    expect(result.output).toMatch(/does not accept environment variables.*Leave `env` out/);
  });

  it("keeps running after stop() if it existed before", { ...patience, ...nightly }, async () => {
    const api = new KernelApi(await address());
    const kernelId = await api.start("ir");
    await using executor = create({ kernelId });
    expect((await executor.executeCodeBlocks([r("cat(6 * 7)")])).output).toBe("42");
    expect(executor.capabilities.languages).toEqual(["r"]);
    await executor.stop();
    expect(await api.list()).toContain(kernelId);
    await api.remove(kernelId);
  });

  it("is listed in the error for an unknown kernel name", patience, async () => {
    await using executor = create({ kernelName: "julia" });
    await expect(executor.start()).rejects.toThrow(/no kernel named "julia".*: (?:ir, python3|python3, ir)\.$/);
    await expect(executor.start()).rejects.toSatisfy(InvalidInputError.isInstance);
  });
});
