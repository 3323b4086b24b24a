import { randomUUID } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { SshCommandLineCodeExecutor, type SshExecutorOptions } from "@fenced/executor-ssh";
import { needs } from "@fenced/test-support";
import { host } from "@fenced/test-support/ssh-server";
import { describe, expect, it, onTestFinished } from "vitest";
import { commandsWith } from "./support/processes.ts";
import { gone, server } from "./support/server.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const fixture = path.join(import.meta.dirname, "fixtures/proxy.mjs");
const halfAMegabyte = 524_288;

/** An executor behind a `ProxyCommand`, and a word that identifies its process. */
function behindProxy(
  how: { readonly bytes?: number; readonly stubborn?: boolean; readonly port?: number },
  options: Partial<SshExecutorOptions> = {},
): { executor: SshCommandLineCodeExecutor; word: string } {
  const word = randomUUID();
  const words = [how.port ?? server?.port, word, how.bytes ?? Infinity, ...(how.stubborn === true ? ["stubborn"] : [])];
  const executor = new SshCommandLineCodeExecutor({
    host,
    configFile: server?.configFile ?? "",
    ...options,
    options: { ProxyCommand: `"${process.execPath}" "${fixture}" ${words.join(" ")}`, ...options.options },
  });
  onTestFinished(() => executor.stop());
  return { executor, word };
}

describe("a connection that breaks while data is sent", needs("ssh", "bash"), () => {
  it("does not run half of a program", async () => {
    const workDir = await temporaryDirectory();
    const { executor } = behindProxy({ bytes: halfAMegabyte }, { workDir });
    const code = `touch ran\n${"# filler\n".repeat(120_000)}`;
    await expect(executor.executeCodeBlocks([{ language: "bash", code }])).rejects.toThrow(BackendUnavailableError);
    await gone();
    expect(await readdir(workDir)).toEqual([]);
  });

  it("does not run a program with half of its input", async () => {
    const workDir = await temporaryDirectory();
    const { executor } = behindProxy({ bytes: halfAMegabyte }, { workDir });
    const blocks = [{ language: "bash", code: "touch ran; cat >read" }];
    await expect(executor.executeCodeBlocks(blocks, { stdin: "x".repeat(1_000_000) })).rejects.toThrow(
      BackendUnavailableError,
    );
    await gone();
    expect(await readdir(workDir)).toEqual([]);
  });

  it("leaves the old file unchanged", async () => {
    const workDir = await temporaryDirectory();
    await writeFile(path.join(workDir, "kept.txt"), "before", { mode: 0o750 });
    const { executor } = behindProxy({ bytes: halfAMegabyte }, { workDir });
    await expect(executor.files.write("kept.txt", "x".repeat(1_000_000))).rejects.toThrow(BackendUnavailableError);
    await gone();
    expect(await readdir(workDir)).toEqual(["kept.txt"]);
    expect(await readFile(path.join(workDir, "kept.txt"), "utf8")).toBe("before");
  });
});

describe("a proxy that outlives ssh", needs("ssh", "bash"), () => {
  it("does not make stop() hang", async () => {
    const { executor, word } = behindProxy({ stubborn: true });
    const result = await executor.executeCodeBlocks([{ language: "bash", code: "echo ran" }]);
    expect(result).toMatchObject({ exitCode: 0, output: "ran\n" });
    await executor.stop();
    await expect.poll(() => commandsWith(word)).toEqual([]);
    await gone();
  });

  it("does not make a failing start() hang", async () => {
    // Nothing answers there: ssh gives up, but its proxy does not.
    const { executor, word } = behindProxy({ stubborn: true, port: 9 }, { options: { ConnectTimeout: "1" } });
    await expect(executor.start()).rejects.toThrow(/cannot be reached/);
    await expect.poll(() => commandsWith(word)).toEqual([]);
  });

  it("does not make a block hang whose connection broke", async () => {
    const { executor, word } = behindProxy({ stubborn: true });
    const stream = executor.streamCodeBlocks([{ language: "bash", code: "echo ran; sleep 300" }]);
    const events = stream[Symbol.asyncIterator]();
    expect(await events.next()).toMatchObject({ value: { type: "block-start" } });
    expect(await events.next()).toMatchObject({ value: { type: "stdout", text: "ran\n" } });
    for (const pid of (await server?.connections()) ?? []) process.kill(pid, "SIGKILL");
    await expect(events.next()).rejects.toThrow(/connection to fenced-test broke/);
    await executor.stop();
    await expect.poll(() => commandsWith(word)).toEqual([]);
    await gone();
  });
});
