import { readFileSync, readdirSync, readlinkSync } from "node:fs";
import { BackendUnavailableError } from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { WasmCodeExecutor } from "../src/index.ts";
import { chooseOsSandbox } from "../src/interpreter/os-sandbox.ts";
import { interpreterProcesses } from "./kill-interpreter.ts";

const works = (await chooseOsSandbox("auto")).used;
const print = { language: "javascript", code: "console.log(6 * 7)" };

describe.runIf(works)("an OS sandbox", () => {
  it("leaves nothing behind when a start is aborted, at any moment", { timeout: 240_000 }, async () => {
    for (let milliseconds = 0; milliseconds < 60; milliseconds += 6) {
      const executor = new WasmCodeExecutor({ languages: ["javascript"], osSandbox: true });
      await expect(executor.start({ signal: AbortSignal.timeout(milliseconds) })).rejects.toThrow(/abort|timeout/i);
      await executor.stop();
      const mark = String(Reflect.get(executor, "id"));
      const left = async (): Promise<number> =>
        (await listProcesses()).filter(({ pid }) => hasVariable(pid, "FENCED_SESSION", mark)).length;
      await expect.poll(left).toBe(0);
    }
  });

  it("contains the interpreters, and the executor says so", { timeout: 240_000 }, async () => {
    await using executor = new WasmCodeExecutor({ languages: ["javascript"] });
    expect(executor.osSandbox).toBeUndefined();
    expect((await executor.executeCodeBlocks([print])).output).toBe("42\n");
    expect([executor.osSandbox, executor.capabilities.isolation]).toEqual([{ used: true }, "wasm"]);
    const outer = await interpreterProcesses(executor);
    const inner = (await listProcesses()).filter(({ parent }) => outer.includes(parent)).map(({ pid }) => pid);
    expect(inner.length).toBe(1);
    for (const name of ["net", "pid", "mnt", "user", "ipc", "uts"]) {
      expect(readlinkSync(`/proc/${inner[0]}/ns/${name}`)).not.toBe(readlinkSync(`/proc/self/ns/${name}`));
    }
    const status = readFileSync(`/proc/${inner[0]}/status`, "utf8");
    expect(status).toMatch(/^CapEff:\s*0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s*1$/m);
    const seen = readdirSync(`/proc/${inner[0]}/root`);
    // The interpreters' own files are where this project is.
    const own = import.meta.dirname.split("/")[1];
    const foreign = ["etc", "home", "root", "proc", "dev", "tmp", "var", "run"].filter((name) => name !== own);
    for (const name of foreign) expect(seen).not.toContain(name);
  });

  it("contains Python, too, and ends with the executor", { timeout: 240_000 }, async () => {
    const executor = new WasmCodeExecutor({ languages: ["python"], osSandbox: true });
    const block = { language: "python", code: "print(6 * 7)" };
    expect((await executor.executeCodeBlocks([block])).output).toBe("42\n");
    const outer = await interpreterProcesses(executor);
    const inner = (await listProcesses()).filter(({ parent }) => outer.includes(parent)).map(({ pid }) => pid);
    await executor.stop();
    const left = async (): Promise<number> =>
      (await listProcesses()).filter(({ pid }) => [...outer, ...inner].includes(pid)).length;
    await expect.poll(left).toBe(0);
  });
});

it("an OS sandbox is not used if `osSandbox` is false", { timeout: 240_000 }, async () => {
  await using executor = new WasmCodeExecutor({ languages: ["javascript"], osSandbox: false });
  expect((await executor.executeCodeBlocks([print])).output).toBe("42\n");
  expect(executor.osSandbox).toEqual({ used: false, reason: "The option osSandbox is false." });
});

it.skipIf(works)("an OS sandbox that is required but does not work is an error", async () => {
  const executor = new WasmCodeExecutor({ languages: ["javascript"], osSandbox: true });
  await expect(executor.start()).rejects.toThrow(BackendUnavailableError);
});
