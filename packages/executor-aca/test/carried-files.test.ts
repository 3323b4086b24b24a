import { needs } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const warnings: string[] = [];
const note = (warning: Error) => void warnings.push(warning.message);
const ended = { exitCode: 124, timedOut: true, stateLost: true };

describe("files carried over into a new session", needs("python3"), () => {
  beforeEach(() => {
    warnings.length = 0;
    process.on("warning", note);
  });
  afterEach(() => void process.off("warning", note));

  it("leave out files that the service refuses, with a warning", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    const code = `for name in ("good.txt", "x\\\\"): open(name, "w").close()
open("huge", "w").truncate(128 * 1024 * 1024 + 1)
while True: pass`;
    expect(await run(executor, code, { timeoutMs: 6000 })).toMatchObject(ended);
    expect((await run(executor, "import os; print(sorted(os.listdir())[-1:])")).output).toBe("['good.txt']\n");
    expect(warnings.toSorted()).toEqual([
      expect.stringMatching(/The file huge was not carried over/),
      expect.stringMatching(/The file x.* could not be carried over into the new session/s),
    ]);
  });

  it("include every file that can be fetched, with a warning for each other one", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ retryForMs: 0 });
    for (const name of ["a.txt", "b.txt"]) await executor.files.write(name, name);
    // The first call is the list; then come the log and the files, one by one.
    setting.emulator.provoke({ kind: "server-error", on: "files", skip: 2, times: 1 });
    expect(await run(executor, "while True: pass", { timeoutMs: 1500 })).toMatchObject(ended);
    expect(await executor.getFileList()).toEqual(["b.txt"]);
    expect(warnings).toEqual([expect.stringMatching(/The file a\.txt could not be fetched/)]);
  });

  it("are given up after several files could not be fetched", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ retryForMs: 0 });
    for (let file = 0; file < 9; file += 1) await executor.files.write(`${file}.txt`, "");
    setting.emulator.provoke({ kind: "server-error", on: "files", skip: 1, times: 4 });
    expect(await run(executor, "while True: pass", { timeoutMs: 1500 })).toMatchObject(ended);
    expect((await run(executor, "print(1)")).output).toBe("1\n");
    expect(warnings.at(-1)).toMatch(/session's other files were not carried over/);
  });

  it("survive if the session is lost before they were stored", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ retryForMs: 0 });
    await executor.files.write("given.txt", "given");
    // The list, the log and the file are fetched; then storing the file fails once.
    setting.emulator.provoke({ kind: "server-error", on: "files", skip: 3, times: 1 });
    // No block has run in the session that expires, so this result reports all that is lost.
    expect(await run(executor, "while True: pass", { timeoutMs: 1500 })).toMatchObject(ended);
    await setting.expire(executor.sessionId);
    expect((await run(executor, "print(open('given.txt').read())")).output).toBe("given\n");
  });

  it("survive restart() if they were not stored yet", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ retryForMs: 0 });
    await executor.files.write("given.txt", "given");
    setting.emulator.provoke({ kind: "server-error", on: "files", skip: 3, times: 1 });
    expect(await run(executor, "while True: pass", { timeoutMs: 1500 })).toMatchObject({ exitCode: 124 });
    await executor.restart();
    expect(await executor.getFileList()).toEqual(["given.txt"]);
  });
});
