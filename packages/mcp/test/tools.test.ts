import { needs } from "@fenced/test-support";
import { isAlive } from "@fenced/test-support/is-alive";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { beforeAll, describe, expect, it } from "vitest";
import { pixel } from "../../ai-sdk/test/support/picture-executor.ts";
import { call, python, textOf } from "./support/call.ts";
import { connectHttp, connectStdio, startHttp } from "./support/start.ts";

type AtEnd = (clean: () => Promise<void>) => void;

const transports: [string, (atEnd: AtEnd) => Promise<Client>][] = [
  ["stdio", (atEnd) => connectStdio(["--executor", "local"], { atEnd })],
  ["HTTP", async (atEnd) => (await connectHttp(await startHttp({}, atEnd), atEnd)).client],
];

const mistakes: [string, Record<string, unknown>, string][] = [
  ["run_code", { language: "cobol", code: "1" }, "language"],
  ["run_code", { language: "python" }, "code"],
  ["read_file", { path: "missing" }, "There is no file missing in the workspace. Call list_files"],
  ["read_file", { path: "../../etc/passwd" }, "workspace"],
  ["read_file", { path: "/etc/passwd" }, "workspace"],
  ["write_file", { path: "../out", content: "" }, "workspace"],
  ["write_file", { path: "a", content: "?", encoding: "base64" }, "The content is not valid base64. Encode it"],
  ["list_files", { directory: "nowhere" }, "nowhere"],
  ["fly", {}, "fly not found"],
];

describe.each(transports)("over %s", (_, connect) => {
  let client: Client;
  beforeAll(async () => {
    const atEnd: (() => Promise<void>)[] = [];
    client = await connect((clean) => atEnd.unshift(clean));
    return async () => {
      for (const clean of atEnd) await clean();
    };
  });

  it("describes its tools", async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "run_code",
      "wait_for_code",
      "cancel_code",
      "list_files",
      "read_file",
      "write_file",
      "restart",
    ]);
    expect(tools[0]).toMatchObject({
      description: expect.stringMatching(/^Runs code and returns what it prints\. Languages: python, /),
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
      inputSchema: {
        required: ["language", "code"],
        properties: { language: { enum: expect.arrayContaining(["python"]) } },
      },
    });
    const listFiles = tools.find(({ name }) => name === "list_files");
    expect(listFiles?.annotations).toEqual({ readOnlyHint: true, openWorldHint: false });
  });

  it("runs code, and reports how it ended", needs("python3"), async () => {
    const done = await call(client, "run_code", { language: "Py", code: "print(6 * 7)" });
    expect(done).toEqual({
      content: [{ type: "text", text: "42\n" }],
      structuredContent: {
        exitCode: 0,
        output: "42\n",
        truncated: false,
        timedOut: false,
        stateLost: false,
        durationMs: expect.any(Number),
      },
    });
    const failed = await call(client, "run_code", { language: "python", code: "raise SystemExit(3)" });
    expect(failed.isError).toBeUndefined();
    expect(failed.structuredContent).toMatchObject({ exitCode: 3 });
    expect(textOf(failed)).toBe("The code failed with exit code 3. It printed nothing.");
  });

  it("reports output while the code runs", needs("python3"), async () => {
    const code =
      "import os, time\nprint('one', flush=True)\nwhile not os.path.exists('go'): time.sleep(.02)\nprint('two')";
    const told: string[] = [];
    const result = await call(
      client,
      "run_code",
      { language: "python", code },
      {
        onprogress({ message = "" }) {
          told.push(message);
          void call(client, "write_file", { path: "go", content: "" });
        },
      },
    );
    expect(told.join("")).toMatch(/^one\n?/);
    expect(textOf(result)).toBe("one\ntwo\n");
  });

  it("reports a progress bar as a terminal shows it", needs("python3"), async () => {
    const code = `import os, sys, time
print("loading", flush=True)
sys.stdout.write("".join(f"\\r\\x1b[32m{n}%\\x1b[0m |{'#' * n}" for n in range(1, 101)))
sys.stdout.flush()
while not os.path.exists('bar-seen'): time.sleep(.02)
print("\\ndone")`;
    const told: string[] = [];
    const onprogress = ({ message = "" }): void => {
      told.push(message);
      if (message.includes("100%")) void call(client, "write_file", { path: "bar-seen", content: "" });
    };
    const result = await call(client, "run_code", { language: "python", code }, { onprogress });
    expect(told.join("")).toMatch(/^loading\n100% \|#{100}(?:\ndone\n)?$/);
    expect(textOf(result)).toMatch(/^loading\n100% \|#{100}\ndone\n$/);
  });

  it("kills running code when the call is cancelled", needs("python3"), async () => {
    const controller = new AbortController();
    let pid = 0;
    const code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)";
    const running = call(
      client,
      "run_code",
      { language: "python", code },
      {
        signal: controller.signal,
        onprogress({ message }) {
          pid = Number(message);
          expect(isAlive(pid)).toBe(true);
          controller.abort("enough");
        },
      },
    );
    await expect(running).rejects.toThrow("enough");
    await expect.poll(() => isAlive(pid), { timeout: 60_000 }).toBe(false);
    expect(await python(client, "print('still here')")).toBe("still here\n");
  });

  it("writes, lists and reads files", needs("python3"), async () => {
    expect(textOf(await call(client, "write_file", { path: "f/data/a.txt", content: "ä\n" }))).toBe(
      "Wrote f/data/a.txt (3 bytes).",
    );
    await call(client, "write_file", { path: "f/b.bin", content: "AAE=", encoding: "base64" });
    await call(client, "write_file", { path: "f/c.png", content: pixel.toString("base64"), encoding: "base64" });
    expect(await python(client, "print(open('f/data/a.txt').read())")).toBe("ä\n\n");
    for (const [content, answer] of [
      ["one ", "Added 4 bytes to parts.txt (now 4 bytes)."],
      ["two", "Added 3 bytes to parts.txt (now 7 bytes)."],
    ]) {
      expect(textOf(await call(client, "write_file", { path: "parts.txt", content, append: true }))).toBe(answer);
    }
    expect(await python(client, "print(open('parts.txt').read())")).toBe("one two\n");

    const listed = await call(client, "list_files", { directory: "f" });
    expect(listed.structuredContent).toEqual({
      total: 3,
      files: [
        { path: "f/b.bin", size: 2 },
        { path: "f/c.png", size: pixel.length },
        { path: "f/data/a.txt", size: 3 },
      ],
    });
    expect(textOf(await call(client, "list_files", { directory: "f/data" }))).toBe("f/data/a.txt (3 bytes)");
    expect((await call(client, "read_file", { path: "./f/data/a.txt" })).content).toEqual([
      { type: "text", text: "ä\n" },
    ]);
    expect((await call(client, "read_file", { path: "f/b.bin" })).content).toEqual([
      {
        type: "resource",
        resource: { uri: "workspace:///f/b.bin", mimeType: "application/octet-stream", blob: "AAE=" },
      },
    ]);
    expect((await call(client, "read_file", { path: "f/c.png" })).content).toEqual([
      { type: "image", mimeType: "image/png", data: pixel.toString("base64") },
    ]);
  });

  it("restarts: processes are killed, files are kept", needs("python3"), async () => {
    const code = "import subprocess\nprint(subprocess.Popen(['sleep', '600']).pid)\nopen('kept', 'w').close()";
    const pid = Number(await python(client, code));
    expect(isAlive(pid)).toBe(true);
    expect(textOf(await call(client, "restart"))).toContain("Files are still there.");
    await expect.poll(() => isAlive(pid), { timeout: 60_000 }).toBe(false);
    expect(textOf(await call(client, "list_files"))).toContain("kept (0 bytes)");
  });

  it("answers a mistake with an error that says what is wrong", async () => {
    for (const [name, args, words] of mistakes) {
      const result = await call(client, name, args);
      expect(result.isError).toBe(true);
      expect(textOf(result)).toContain(words);
    }
  });
});
