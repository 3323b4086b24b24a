import type { Fault } from "@fenced/aca-emulator";
import { BackendUnavailableError, FileNotFoundError, FunctionWithRequirements, InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const apiVersion = "2024-02-02-preview";
const double = FunctionWithRequirements.fromString("def double(number):\n    return number * 2\n");

describe("API version 2024-02-02-preview", needs("python3"), () => {
  it("runs blocks, keeps variables, shows values and failures", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ apiVersion, functions: [double] });
    expect((await run(executor, "x = 20\nprint('set')")).output).toBe("set\n");
    expect((await run(executor, "from functions import double\ndouble(x + 1)")).output).toBe("42\n");
    expect(await run(executor, "1 / 0")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("ZeroDivisionError"),
    });
    const both = await run(executor, "import sys\nprint('a'); print('b', file=sys.stderr); print('c')");
    expect(both.output).toBe("a\nb\nc\n");
  });

  it("has one flat directory of files", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ apiVersion });
    const { files } = executor;
    await files.write("a.txt", "content");
    expect(await files.list()).toEqual([{ path: "a.txt", size: 7 }]);
    expect(new TextDecoder().decode(await files.read("a.txt"))).toBe("content");
    expect((await run(executor, "print(open('a.txt').read())")).output).toBe("content\n");
    await expect(files.write("dir/a.txt", "")).rejects.toSatisfy((error) => InvalidInputError.isInstance(error));
    await expect(files.read("missing.txt")).rejects.toSatisfy((error) => FileNotFoundError.isInstance(error));
    await files.remove("a.txt");
    await expect(files.remove("a.txt")).rejects.toSatisfy((error) => FileNotFoundError.isInstance(error));
    expect(await files.list()).toEqual([]);
  });

  it("ends a block by replacing the session, and carries the files over", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ apiVersion });
    await executor.files.write("kept.txt", "kept");
    await run(executor, "pass");
    const result = await run(executor, "print('so far')\nwhile True: pass", { timeoutMs: 6000 });
    expect(result).toMatchObject({ exitCode: 124, output: "so far\n", stateLost: true });
    expect(await executor.getFileList()).toEqual(["kept.txt"]);
    expect(setting.emulator.sessions()).toHaveLength(1);
  });

  it("notices that its session was replaced", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ apiVersion });
    await run(executor, "x = 1");
    setting.emulator.provoke({ kind: "expired-session", on: "executions", times: 1 });
    expect(await run(executor, "print('fresh')")).toMatchObject({ output: "fresh\n", stateLost: true });
  });

  it.for<Fault>([
    { kind: "drop", afterwards: true },
    { kind: "server-error", afterwards: true },
    { kind: "server-error", status: 503, afterwards: true },
  ])("does not resend a block whose answer was lost, since it cannot poll for the answer (%o)", async (fault) => {
    await using setting = await Setting.open();
    const executor = setting.executor({ apiVersion });
    const note = `with open("ran.txt", "a") as file: file.write("x")`;
    await run(executor, note);
    setting.emulator.provoke({ ...fault, on: "executions", skip: 1, times: 1 });
    await expect(run(executor, note)).rejects.toSatisfy(
      (error) => BackendUnavailableError.isInstance(error) && /may or may not/.test(error.message),
    );
    setting.emulator.setFaults([]);
    expect(await executor.files.read("ran.txt")).toHaveLength(2);
  });

  it("lists packages by running code", async () => {
    await using setting = await Setting.open();
    expect(Array.isArray(await setting.executor({ apiVersion }).getAvailablePackages())).toBe(true);
  });
});
