import { setTimeout as sleep } from "node:timers/promises";
import type { CodeResult } from "@fenced/core";
import { SshCommandLineCodeExecutor, type SshExecutorOptions } from "@fenced/executor-ssh";
import { backend, needs } from "@fenced/test-support";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { remains } from "./support/remains.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const server = backend("ssh").available ? await SshServer.start() : undefined;

function create(options: Partial<SshExecutorOptions> = {}): SshCommandLineCodeExecutor {
  const executor = new SshCommandLineCodeExecutor({ host, configFile: server?.configFile ?? "", ...options });
  onTestFinished(() => executor.stop());
  return executor;
}

function bash(
  executor: SshCommandLineCodeExecutor,
  code: string,
  options: Parameters<SshCommandLineCodeExecutor["executeCodeBlocks"]>[1] = {},
): Promise<CodeResult> {
  return executor.executeCodeBlocks([{ language: "bash", code }], options);
}

describe("awkward blocks", needs("ssh", "bash"), () => {
  afterAll(async () => server?.[Symbol.asyncDispose]());

  it("may have variables of any name", async () => {
    const names = ["id", "number", "d", "file", "input", "after", "code", "workspace", "shell", "setsid", "nonce"];
    const env = Object.fromEntries(names.map((name) => [name, "7"]));
    const result = await bash(create(), 'echo "$id $file $shell $setsid"; echo problem >&2', { env });
    expect(result).toMatchObject({ exitCode: 0, stdout: "7 7 7 7\n", stderr: "problem\n" });
  });

  it("and files may have any name in a refusal", async () => {
    const executor = create({ workDir: await temporaryDirectory() });
    for (const name of ["a\rb", "a\u2028b", "a\u2029b"]) {
      // A program that runs cannot be written to, not by root either.
      const code = `cp "$(command -v sleep)" "$NAME"; "./$NAME" 300 >/dev/null 2>&1 &
        while ! grep -q 300 "/proc/$!/cmdline" || [ "$(readlink -f "/proc/$!/exe")" != "$PWD/$NAME" ]; do sleep 0.05; done`;
      expect(await bash(executor, code, { env: { NAME: name } })).toMatchObject({ exitCode: 0 });
      await expect(executor.files.write(name, "lost")).rejects.toThrow(/refuses .*busy/is);
    }
  });

  it("cannot hold up the input of later ones", async () => {
    const executor = create();
    expect(await bash(executor, "for n in 2 3 4; do mkfifo ../input/$n; done")).toMatchObject({ exitCode: 0 });
    const held = await bash(executor, "cat", { stdin: "never read", timeoutMs: 2000 });
    expect(held).toMatchObject({ exitCode: 124, timedOut: true });
    const controller = new AbortController();
    const aborted = bash(executor, "cat", { stdin: "never read", signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    expect(await bash(executor, "echo next")).toMatchObject({ exitCode: 0, output: "next\n" });
    await executor.stop();
    await expect.poll(async () => (server ? remains(server) : []), { timeout: 10_000 }).toEqual([]);
  });

  it("were in time though their reader was not, and what they left lives on", async () => {
    const executor = create();
    const code = "sleep 300 >/dev/null 2>&1 & echo $!";
    let result: CodeResult | undefined;
    for await (const event of executor.streamCodeBlocks([{ language: "bash", code }], { timeoutMs: 3000 })) {
      if (event.type === "result") ({ result } = event);
      else if (event.type === "stdout") await sleep(4000);
    }
    expect(result).toMatchObject({ exitCode: 0, timedOut: false });
    expect(await bash(executor, `kill -0 ${result?.output.trim()}`)).toMatchObject({ exitCode: 0, output: "" });
  });
});
