import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { sharedServer } from "./support/local-server.ts";
import { python } from "./support/python.ts";

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

// AutoGen's own cases for its executor of this name, under the names of its tests. Words after them say what differs.
describe("AutoGen's cases for Jupyter", { ...needs("jupyter"), timeout: 120_000 }, () => {
  const { executor: create } = sharedServer();

  it("test_execute_code", async () => {
    await using executor = create();
    const result = await executor.executeCodeBlocks([python("import sys; print('hello world!')")]);
    expect(result).toMatchObject({ exitCode: 0, output: "hello world!\n", displays: [] });
  });

  it("test_execute_code_error: the first cell is number 1", async () => {
    await using executor = create();
    const result = await executor.executeCodeBlocks([python("print(undefined_variable)")]);
    expect(result.exitCode).toBe(1);
    expect(result.output).toMatch(/(?:Cell In ?\[1\]|<ipython-input-1-)/);
    expect(result.output).toMatch(/-> 1 print\(undefined_variable\)/);
    expect(result.output).toMatch(/NameError: name 'undefined_variable' is not defined/);
  });

  it("test_execute_multiple_code_blocks: joins outputs directly, where AutoGen adds an empty line", async () => {
    await using executor = create();
    const blocks = [python("import sys; print('hello world!')"), python("a = 100 + 100; print(a)")];
    expect(await executor.executeCodeBlocks(blocks)).toMatchObject({ exitCode: 0, output: "hello world!\n200\n" });
  });

  it("test_depedent_executions", async () => {
    await using executor = create();
    await executor.executeCodeBlocks([python("a = 'hello world!'")]);
    expect((await executor.executeCodeBlocks([python("print(a)")])).output).toBe("hello world!\n");
  });

  it("test_execute_multiple_code_blocks_error: the second cell is number 2", async () => {
    await using executor = create();
    const blocks = [python("print('hello world!')"), python("a = 200; print(a); print(undefined_variable)")];
    const result = await executor.executeCodeBlocks(blocks);
    expect(result.exitCode).toBe(1);
    expect(result.output).toMatch(/^hello world!\n200\n/);
    expect(result.output).toMatch(/(?:Cell In ?\[2\]|<ipython-input-2-)/);
  });

  it("test_execute_code_after_restart", async () => {
    await using executor = create();
    await executor.start();
    await executor.restart();
    expect((await executor.executeCodeBlocks([python("print('hello world!')")])).output).toBe("hello world!\n");
  });

  it("test_commandline_code_executor_timeout: returns a result where AutoGen throws", async () => {
    await using executor = create({ timeoutMs: 2000 });
    const result = await executor.executeCodeBlocks([python("import time; time.sleep(10); print('hello')")]);
    expect(result).toMatchObject({ exitCode: 124, timedOut: true, stdout: "" });
  });

  it("test_commandline_code_executor_cancellation", async () => {
    await using executor = create();
    await executor.start();
    const signal = AbortSignal.timeout(1000);
    const call = executor.executeCodeBlocks([python("import time; time.sleep(10); print('hello')")], { signal });
    await expect(call).rejects.toHaveProperty("name", "TimeoutError");
  });

  it("test_execute_code_with_image_output: saves one file", async () => {
    const outputDir = await temporaryDirectory();
    await using executor = create({ outputDir });
    // PIL's images have a PNG, a JPEG and a text form, like any class with these methods.
    const code = `
import base64
class Picture:
    def __repr__(self): return "<Picture image mode=RGB size=1x1>"
    def _repr_png_(self): return base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
    def _repr_jpeg_(self): return b"not read"
display(Picture())`;
    const { exitCode, displays } = await executor.executeCodeBlocks([python(code)]);
    expect(exitCode).toBe(0);
    expect(displays).toHaveLength(1);
    expect(displays[0]?.data["text/plain"]).toBe("<Picture image mode=RGB size=1x1>");
    expect(displays[0]?.files.map((file) => path.dirname(file))).toEqual([outputDir]);
    expect(await readdir(outputDir)).toHaveLength(1);
  });

  it("test_execute_code_with_html_output: saves one file", async () => {
    const outputDir = await temporaryDirectory();
    await using executor = create({ outputDir });
    const code = "from IPython.display import HTML\nHTML('<div>Hello, HTML world!</div>')";
    const { displays } = await executor.executeCodeBlocks([python(code)]);
    expect(displays).toMatchObject([{ data: { "text/plain": "<IPython.core.display.HTML object>" } }]);
    expect(displays[0]?.files.map((file) => path.dirname(file))).toEqual([outputDir]);
  });
});
