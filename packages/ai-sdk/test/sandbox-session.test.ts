import { FileNotFoundError, InvalidInputError } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { type Experimental_SandboxSession as AiSdkSandbox, generateText, isStepCount, tool } from "ai-7";
import { createAnthropic } from "anthropic-4";
import { afterAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { sandboxSession } from "../src/index.ts";
import { startAnthropicServer } from "./support/anthropic-server.ts";
import { PictureExecutor } from "./support/picture-executor.ts";

process.removeAllListeners("warning");

const executor = new LocalCommandLineCodeExecutor({ env: { LEFT: "executor", BOTH: "executor" } });
afterAll(() => executor.stop());
const sandbox: AiSdkSandbox = sandboxSession(executor);

const bytesOf = async (stream: ReadableStream<Uint8Array> | null): Promise<Buffer> => {
  if (!stream) throw new Error("there is no file");
  return Buffer.from(await new Response(stream).arrayBuffer());
};
const streamOf = (...pieces: Uint8Array[]) => ReadableStream.from(pieces);

describe("commands", () => {
  it("run in a working directory with variables, and return their exit code", async () => {
    await sandbox.writeTextFile({ path: "in here/a.txt", content: "text" });
    expect(
      await sandbox.run({
        command: 'cat a.txt; echo " $LEFT $BOTH"; pwd >&2; exit 3',
        workingDirectory: "in here",
        env: { BOTH: "call" },
      }),
    ).toEqual({ exitCode: 3, stdout: "text executor call\n", stderr: `${executor.workspacePath}/in here\n` });
    expect(sandbox.description).toContain(executor.workspacePath);
  });

  it("keep the beginning and the end of a long output", async () => {
    const short = sandboxSession(executor, { maxOutputBytes: 10 });
    const command = "printf 12345; head -c 3000000 /dev/zero; printf 67890";
    const { stdout } = await short.run({ command });
    expect(stdout).toMatch(/^12345\n\[\.\.\. \d+ bytes left out \.\.\.\]\n/);
    expect(stdout).toMatch(/67890$/);
    expect(stdout.length).toBeLessThan(400_000);
  });

  it("can be spawned, read, waited for and killed", async () => {
    const started = await sandbox.spawn({ command: "echo ready; sleep 600" });
    const reader = started.stdout.getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("ready\n");
    await started.kill();
    expect(await started.wait()).toEqual({ exitCode: 137 });
    expect((await reader.read()).done).toBe(true);
  });

  it("are killed by an abort, and reject with its reason", async () => {
    const controller = new AbortController();
    const spawned = await sandbox.spawn({ command: "sleep 600", abortSignal: controller.signal });
    const ran = sandbox.run({ command: "sleep 600", abortSignal: controller.signal });
    const reason = new Error("enough");
    controller.abort(reason);
    expect(await Promise.allSettled([spawned.wait(), ran])).toEqual([
      { status: "rejected", reason },
      { status: "rejected", reason },
    ]);
  });

  it("read their standard input while they run", async () => {
    const started = await sandbox.spawn({ command: 'read -r line; echo "<$line>"; cat; exit 4', stdin: true });
    const writer = started.stdin.getWriter();
    const reader = started.stdout.pipeThrough(new TextDecoderStream()).getReader();
    await writer.write(new TextEncoder().encode("one\n"));
    expect(await reader.read()).toEqual({ done: false, value: "<one>\n" });
    await writer.write(new TextEncoder().encode("two"));
    expect(await reader.read()).toEqual({ done: false, value: "two" });
    await writer.close();
    expect(await started.wait()).toEqual({ exitCode: 4 });
    expect((await reader.read()).done).toBe(true);
  });
});

describe("files", () => {
  it("are written and read as text, bytes and streams", async () => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => index % 256);
    await sandbox.writeBinaryFile({ path: "new/deep/bytes", content: bytes });
    expect(
      Buffer.from(bytes).equals((await sandbox.readBinaryFile({ path: "new/deep/bytes" })) ?? new Uint8Array()),
    ).toBe(true);
    expect(Buffer.from(bytes).equals(await bytesOf(await sandbox.readFile({ path: "new/deep/bytes" })))).toBe(true);

    const large = Array.from({ length: 12 }, () => bytes);
    await sandbox.writeFile({ path: "large", content: streamOf(...large) });
    expect(Buffer.concat(large).equals(await bytesOf(await sandbox.readFile({ path: "large" })))).toBe(true);
    await sandbox.writeFile({ path: "empty", content: streamOf() });
    expect(await sandbox.readTextFile({ path: "empty" })).toBe("");

    await sandbox.writeTextFile({ path: "-lines", content: "eins\nzwei\ndrüi\n" });
    expect(await sandbox.readTextFile({ path: "-lines", startLine: 2, endLine: 3 })).toBe("zwei\ndrüi");
    expect(await sandbox.readTextFile({ path: `${executor.workspacePath}/-lines`, endLine: 1 })).toBe("eins");
    await sandbox.writeTextFile({ path: "latin", content: "ü", encoding: "latin1" });
    expect(await sandbox.readTextFile({ path: "latin", encoding: "latin1" })).toBe("ü");
    expect((await executor.files.list()).filter(({ path }) => path.includes("part"))).toEqual([]);
  });

  it("keep their mode, and are written through links", async () => {
    await sandbox.writeTextFile({ path: "run.sh", content: "echo one" });
    await sandbox.run({ command: "chmod +x run.sh; ln -s run.sh link" });
    await sandbox.writeTextFile({ path: "link", content: "#!/bin/sh\necho two" });
    expect(await sandbox.run({ command: "./run.sh" })).toMatchObject({ stdout: "two\n" });
  });

  it("are null if they do not exist, and other file types are rejected", async () => {
    const path = "nothing/here";
    expect(await sandbox.readFile({ path })).toBeNull();
    expect(await sandbox.readTextFile({ path })).toBeNull();
    expect(await sandbox.stat({ path })).toBeNull();
    expect(await sandbox.listDirectory({ path })).toBeNull();
    expect(await sandbox.deleteFile({ path })).toBe(false);
    await sandbox.run({ command: "mkdir -p dir; mkfifo pipe" });
    const refused = [
      () => sandbox.readFile({ path: "dir" }),
      () => sandbox.readFile({ path: "pipe" }),
      () => sandbox.writeTextFile({ path: "dir", content: "" }),
      () => sandbox.listDirectory({ path: "pipe" }),
      () => sandbox.deleteFile({ path: "dir" }),
      () => sandbox.readTextFile({ path: "" }),
      () => sandbox.readTextFile({ path: "dir", encoding: "no-such" }),
    ];
    for (const call of refused) {
      await expect(Promise.resolve(call())).rejects.toSatisfy((error) => InvalidInputError.isInstance(error));
    }
  });

  it("and directories can be examined and listed, and a link deleted without its target", async () => {
    await sandbox.run({
      command: "mkdir -p look/inner; cd look; printf 1234 > 'a\nb'; ln -s inner link; mkfifo pipe; touch .hidden",
    });
    expect(await sandbox.stat({ path: "look/a\nb" })).toEqual({ type: "file", size: 4 });
    expect(await sandbox.stat({ path: "look/link" })).toEqual({ type: "directory", size: 0 });
    expect(await sandbox.stat({ path: "look/pipe" })).toEqual({ type: "other", size: 0 });
    const entries = (await sandbox.listDirectory({ path: "look" })) ?? [];
    expect(entries.toSorted((one, other) => one.name.localeCompare(other.name))).toEqual(
      [
        { name: ".hidden", type: "file" },
        { name: "a\nb", type: "file" },
        { name: "inner", type: "directory" },
        { name: "link", type: "symlink" },
        { name: "pipe", type: "other" },
      ].toSorted((one, other) => one.name.localeCompare(other.name)),
    );
    expect(await sandbox.deleteFile({ path: "look/link" })).toBe(true);
    expect(await sandbox.stat({ path: "look/inner" })).not.toBeNull();
  });

  it("leave nothing behind if the stream of their content fails", async () => {
    const content = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new Uint8Array(3_000_000));
      },
      pull() {
        throw new FileNotFoundError("gone", { remedy: "None." });
      },
    });
    const written = Promise.resolve(sandbox.writeFile({ path: "half", content }));
    await expect(written).rejects.toSatisfy((error) => FileNotFoundError.isInstance(error));
    const left = ((await sandbox.listDirectory({ path: "." })) ?? []).map(({ name }) => name);
    expect(left.filter((name) => name === "half" || name.includes("part"))).toEqual([]);
  });
});

describe("the AI SDK's tools", () => {
  it("run in the sandbox: Anthropic's bash, and one that reads files", async () => {
    await using server = await startAnthropicServer([
      [{ type: "tool_use", id: "1", name: "bash", input: { command: "echo hi > made.txt; echo done" } }],
      [{ type: "tool_use", id: "2", name: "read", input: { path: "made.txt" } }],
      [{ type: "text", text: "fine" }],
    ]);
    const anthropic = createAnthropic({ baseURL: server.baseURL, apiKey: "none" });
    const { text, steps } = await generateText({
      model: anthropic("claude-test"),
      prompt: "Do it.",
      tools: {
        bash: anthropic.tools.bash_20250124(),
        read: tool({
          inputSchema: z.object({ path: z.string() }),
          execute: ({ path }, { experimental_sandbox: given }) => given?.readTextFile({ path }) ?? "no sandbox",
        }),
      },
      experimental_sandbox: sandbox,
      stopWhen: isStepCount(3),
    });
    expect(text).toBe("fine");
    expect(steps[0]?.toolResults[0]?.output).toEqual({ exitCode: 0, stdout: "done\n", stderr: "" });
    expect(steps[1]?.toolResults[0]?.output).toBe("hi\n");
  });
});

describe("other executors", () => {
  it("are rejected if they cannot start programs, as are invalid options", () => {
    const refused = [
      () => sandboxSession(new PictureExecutor({})),
      () => sandboxSession(executor, { maxOutputBytes: -1 }),
      (): unknown => Reflect.apply(sandboxSession, undefined, [executor, { maxBytes: 1 }]),
    ];
    for (const call of refused) expect(call).toThrow(InvalidInputError);
  });

  it("work the same in containers", needs("docker"), async () => {
    await using container = new DockerCommandLineCodeExecutor({ image: "fenced-test:python", network: "none" });
    const inside = sandboxSession(container);
    await inside.writeTextFile({ path: "/tmp/outside/of.txt", content: "in the container" });
    expect(await inside.run({ command: "cat /tmp/outside/of.txt; pwd" })).toMatchObject({
      stdout: "in the container/workspace\n",
    });
    expect(await inside.stat({ path: "/tmp/outside" })).toEqual({ type: "directory", size: 0 });
  });
});
