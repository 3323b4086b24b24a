import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FunctionSetupError, FunctionWithRequirements } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { run, Setting } from "./support.ts";

const add = FunctionWithRequirements.fromString(`
def add_two_numbers(a: int, b: int) -> int:
    """Add two numbers together."""
    return a + b
`);

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

// AutoGen's own cases for its executor of this name, under the names of its tests. Words after them say what differs.
describe("AutoGen's cases for dynamic sessions", needs("python3"), () => {
  it("test_execute_code", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    expect(await run(executor, "import sys; print('hello world!')")).toMatchObject({ exitCode: 0 });
    const { output } = await executor.executeCodeBlocks([
      { language: "python", code: "import sys; print('hello world!')" },
      { language: "python", code: "a = 100 + 100; print(a)" },
    ]);
    expect(output).toBe("hello world!\n200\n");
    const unknown = await run(executor, "echo 'hello world!'", { language: "klingon" });
    expect(unknown).toMatchObject({ exitCode: 1, output: expect.stringMatching(/klingon/) });
  });

  it("test_azure_container_code_executor_timeout: returns a result where AutoGen throws", async () => {
    await using setting = await Setting.open();
    const result = await run(setting.executor(), "import time; time.sleep(10); print('hello')", { timeoutMs: 1000 });
    expect(result).toMatchObject({ exitCode: 124, timedOut: true, stdout: "" });
  });

  it("test_azure_container_code_executor_cancellation", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    const signal = AbortSignal.timeout(500);
    const call = run(executor, "import time; time.sleep(10); print('hello')", { signal });
    await expect(call).rejects.toHaveProperty("name", "TimeoutError");
  });

  it("test_upload_files, test_download_files", async () => {
    const directory = await temporaryDirectory();
    await using setting = await Setting.open();
    const executor = setting.executor();
    await writeFile(join(directory, "test1.txt"), "test file 1");
    await executor.files.upload([join(directory, "test1.txt")]);
    const { output } = await run(executor, "print(open('test1.txt').read())\nopen('test2', 'w').write('test file 2');");
    expect(output).toContain("test file 1");
    expect((await executor.files.list()).map(({ path }) => path)).toEqual(["test1.txt", "test2"]);
    const [copy = ""] = await executor.files.download(["test2"], join(directory, "down"));
    expect(await readFile(copy, "utf8")).toBe("test file 2");
  });

  it("test_azure_can_load_function, test_azure_can_load_str_function_with_reqs: works as a global, without an import", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ functions: [add] });
    expect(await run(executor, "print(add_two_numbers(1, 2))")).toMatchObject({ exitCode: 0, output: "3\n" });
  });

  it("test_azure_can_load_function_with_reqs", async () => {
    const load = FunctionWithRequirements.fromString(
      "def first_name() -> str:\n    return json.loads('[\"John\"]')[0]",
      {
        globalImports: ["json"],
      },
    );
    await using setting = await Setting.open();
    expect(await run(setting.executor({ functions: [load] }), "print(first_name())")).toMatchObject({
      output: "John\n",
    });
  });

  it("test_azure_fails_for_function_incorrect_import, test_azure_fails_for_function_incorrect_dep", async () => {
    const source = "def incorrect():\n    return 1";
    await using setting = await Setting.open();
    for (const requirements of [
      { globalImports: ["NOT_A_REAL_PACKAGE"] },
      { pythonPackages: ["NOT_A_REAL_PACKAGE"] },
    ]) {
      const incorrect = FunctionWithRequirements.fromString(source, requirements);
      const call = run(setting.executor({ functions: [incorrect] }), "incorrect()");
      await expect(call).rejects.toSatisfy(FunctionSetupError.isInstance);
    }
  });

  it("test_azure_formatted_prompt, test_azure_formatted_prompt_str_func", async () => {
    await using setting = await Setting.open();
    const prompt = setting.executor({ functions: [add] }).formatFunctionsForPrompt();
    expect(prompt).toContain('def add_two_numbers(a: int, b: int) -> int:\n    """Add two numbers together."""\n');
  });

  it("test_azure_cant_run_broken_str_function_with_reqs", async () => {
    await using setting = await Setting.open();
    const result = await run(setting.executor({ functions: [add] }), "print(add_two_numbers(object(), False))");
    expect(result.exitCode).toBe(1);
    expect(result.output).toContain("TypeError: unsupported operand type(s) for +:");
  });
});
