import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs, nightly } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { newClient, newSession, png } from "./support.ts";

const idIn = (text: string): number => Number(/session ID (\d+)/.exec(text)?.[1]);

describe("commands", () => {
  it("return their output in words and in parts", async () => {
    const session = await newSession({ manifest: { environment: { GREETING: "hello" } } });
    const cmd = 'echo "$GREETING"; echo oops >&2; exit 3';
    expect(await session.execCommand({ cmd })).toMatch(
      /^Chunk ID: .*\nWall time: .*\nProcess exited with code 3\nOutput:\nhello\noops\n$/,
    );
    expect(await session.exec({ cmd })).toMatchObject({ exitCode: 3, stdout: "hello\n", stderr: "oops\n" });
  });

  it("start where they are told, in the shell that is named", async () => {
    const session = await newSession({ manifest: { entries: { "in here": { type: "dir" } } } });
    const { root } = session.state.manifest;
    for (const workdir of ["in here", "/workspace/in here", `${root}/in here`]) {
      expect(await session.exec({ cmd: "pwd", workdir })).toMatchObject({ stdout: `${root}/in here\n` });
    }
    const named = await session.exec({ cmd: 'echo "$0" "$-"', shell: "sh", login: false });
    expect(named.stdout).toMatch(/^sh /);
  });

  it("are in Bash without a shell's name, if it is there", needs("bash"), async () => {
    const session = await newSession();
    expect(await session.exec({ cmd: "a=(1 2); echo ${a[1]}; [[ x == x ]] && echo yes" })).toMatchObject({
      stdout: "2\nyes\n",
    });
  });

  it("truncate what a model reads", async () => {
    const session = await newSession();
    const { output, originalTokenCount } = await session.exec({ cmd: "seq 10000", maxOutputTokens: 50 });
    expect(originalTokenCount).toBeGreaterThan(10_000);
    expect(output.length).toBeLessThanOrEqual(200);
    expect(output).toContain("tokens truncated");
  });

  it("go on after their caller's time, and keep only the end of what they print", needs("bash"), async () => {
    const session = await newSession({}, { maxOutputBytes: 10_000 });
    const begun = await session.execCommand({ cmd: "yes äöü", yieldTimeMs: 500 });
    expect(begun).toMatch(
      /Process running with session ID 1\nOutput:\n\[\.\.\.\d+ characters truncated from process output\.\.\.\]\n/,
    );
    expect(Buffer.byteLength(begun)).toBeLessThan(11_000);
    expect(begun).not.toContain("\uFFFD");
    expect(await session.writeStdin({ sessionId: 1 })).toContain("session ID 1");
    await session.stop();
    expect(await session.writeStdin({ sessionId: 1 })).toContain("write_stdin failed: session not found: 1");
    expect(await session.exec({ cmd: "echo there" })).toMatchObject({ stdout: "there\n" });
  });

  it("tell what they printed last when their sandbox ends", async () => {
    const session = await newSession();
    const id = idIn(await session.execCommand({ cmd: "exec sleep 600", yieldTimeMs: 0 }));
    const waiting = session.writeStdin({ sessionId: id, yieldTimeMs: 600_000 });
    const fresh = session.execCommand({ cmd: "echo first; echo there > marker; exec sleep 600", yieldTimeMs: 600_000 });
    const ended = Promise.allSettled([waiting, fresh]);
    await expect.poll(() => session.pathExists("marker"), { timeout: 60_000 }).toBe(true);
    await session.close();
    expect(await ended).toMatchObject([
      { reason: { code: "exec_transport_error", message: expect.stringMatching(/stopped/i) } },
      { reason: { message: expect.stringMatching(/\nOutput before that:\nfirst\n$/) } },
    ]);
    expect(await session.running()).toBe(false);
    await session.close();
    await session.delete();
  });

  it("are limited in number", nightly, async () => {
    const session = await newSession();
    for (let each = 0; each < 32; each += 1) await session.exec({ cmd: "exec sleep 600", yieldTimeMs: 0 });
    await expect(session.exec({ cmd: "true" })).rejects.toThrow("32 commands are still running");
    await session.stop();
    expect(await session.exec({ cmd: "true" })).toMatchObject({ exitCode: 0 });
  });
});

describe("terminals", () => {
  const onTerminals = { createExecutor: () => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" }) };

  it("are typed on, and Ctrl-C interrupts", needs("bubblewrap", "python3"), async () => {
    const session = await newSession({}, onTerminals);
    expect(session.supportsPty()).toBe(true);
    const begun = await session.execCommand({
      cmd: 'test -t 0 && stty size; read -r name; echo "<$name>"; trap "echo caught; exit 7" INT; while :; do sleep 0.1; done',
      tty: true,
      yieldTimeMs: 500,
    });
    const sessionId = idIn(begun);
    let seen = begun;
    const write = async (chars: string): Promise<void> => {
      seen += await session.writeStdin({ sessionId, chars, yieldTimeMs: 100 });
    };
    await write("Ada\n");
    while (!seen.includes("<Ada>")) await write("");
    expect(seen).toContain("40 120");
    await write("\u0003");
    while (!seen.includes("exited with code 7")) await write("");
    expect(seen).toContain("caught");
  });

  it("are not needed for input and interrupts", needs("bubblewrap", "python3"), async () => {
    const session = await newSession({}, onTerminals);
    const sessionId = idIn(
      await session.execCommand({
        cmd: 'trap "echo caught; exit 8" INT; read -r line; echo "<$line>"; while :; do sleep 0.1; done',
        yieldTimeMs: 300,
      }),
    );
    let seen = "";
    const write = async (chars: string): Promise<void> => {
      seen += await session.writeStdin({ sessionId, chars, yieldTimeMs: 100 });
    };
    await write("text\n");
    while (!seen.includes("<text>")) await write("");
    await write("\u0003");
    while (!seen.includes("exited with code 8")) await write("");
    expect(seen).toContain("caught");
  });
});

describe("files", () => {
  it("are read, listed and found", async () => {
    const session = await newSession({
      manifest: { entries: { src: { type: "dir", children: { "a.txt": { type: "file", content: "text" } } } } },
    });
    expect(Buffer.from(await session.readFile({ path: "src/a.txt" })).toString()).toBe("text");
    expect(Buffer.from(await session.readFile({ path: "/workspace/src/a.txt", maxBytes: 2 })).toString()).toBe("te");
    expect(await session.listDir({ path: "src" })).toEqual([{ name: "a.txt", path: "src/a.txt", type: "file" }]);
    expect(await session.listDir({ path: "." })).toEqual([{ name: "src", path: "src", type: "dir" }]);
    expect([await session.pathExists("src/a.txt"), await session.pathExists("src/b.txt")]).toEqual([true, false]);
    expect([await session.directoryExists("src"), await session.directoryExists("src/a.txt")]).toEqual([true, false]);
    await expect(session.readFile({ path: "none" })).rejects.toMatchObject({ code: "workspace_read_not_found" });
    await expect(session.listDir({ path: "none" })).rejects.toMatchObject({ code: "workspace_read_not_found" });
    await expect(session.readFile({ path: "/etc/passwd" })).rejects.toThrow("workspace");
  });

  it("of any size cannot fill this program", needs("bash"), async () => {
    const session = await newSession();
    await session.exec({ cmd: "truncate -s 100G huge.png; ln -s /etc/passwd leading-out; mkdir directory.png" });
    await expect(session.readFile({ path: "huge.png" })).rejects.toThrow("Set `maxBytes`");
    await expect(session.viewImage({ path: "huge.png" })).rejects.toThrow("exceeds the 10 MB limit");
    await expect(
      session.createEditor().updateFile({ type: "update_file", path: "huge.png", diff: "-a\n+b\n" }),
    ).rejects.toThrow("Change it with a command");
    await expect(session.viewImage({ path: "directory.png" })).rejects.toThrow("not a file");
    await expect(session.viewImage({ path: "none.png" })).rejects.toThrow("not found");
    await expect(session.readFile({ path: "leading-out" })).rejects.toThrow("is not in the workspace");
    session.setArchiveLimits({ maxInputBytes: 1_000_000 });
    await expect(session.persistWorkspace()).rejects.toThrow("Raise `archiveLimits.maxInputBytes`");
  });

  it("are looked at as images", async () => {
    const session = await newSession({ manifest: { entries: { "a.png": { type: "file", content: png } } } });
    expect(await session.viewImage({ path: "a.png" })).toEqual({
      type: "image",
      image: { data: new Uint8Array(png), mediaType: "image/png" },
    });
  });

  it("travel in archives", needs("bash"), async () => {
    const client = newClient();
    const first = await client.create({ manifest: { entries: { "a/b": { type: "file", content: "there" } } } });
    await first.exec({ cmd: "ln -s a/b link; chmod 600 a/b" });
    const archive = await first.persistWorkspace();
    const second = await client.create();
    await expect(second.hydrateWorkspace(archive, { archiveLimits: { maxMembers: 2 } })).rejects.toThrow(
      "archiveLimits.maxMembers",
    );
    await expect(second.hydrateWorkspace(archive, { archiveLimits: { maxInputBytes: 100 } })).rejects.toThrow(
      "archiveLimits.maxInputBytes",
    );
    await expect(second.hydrateWorkspace(archive, { archiveLimits: { maxExtractedBytes: 2 } })).rejects.toThrow(
      "maxBytes",
    );
    await expect(second.hydrateWorkspace("no archive")).rejects.toThrow("archive");
    expect(await second.listDir({ path: "." })).toEqual([]);
    await second.hydrateWorkspace(archive, { archiveLimits: { maxMembers: 3 } });
    expect(await second.exec({ cmd: "cat link; stat -c %a a/b" })).toMatchObject({ stdout: "there600\n" });
  });
});

describe("patches", () => {
  it("create, change, move and delete files", needs("bash"), async () => {
    const session = await newSession();
    const editor = session.createEditor();
    await editor.createFile({ type: "create_file", path: "src/run.sh", diff: "+echo one\n+echo two\n" });
    await session.exec({ cmd: "chmod 755 src/run.sh" });
    await editor.updateFile({ type: "update_file", path: "src/run.sh", diff: " echo one\n-echo two\n+echo three\n" });
    expect(await session.exec({ cmd: "./src/run.sh" })).toMatchObject({ stdout: "one\nthree\n" });
    await editor.updateFile({ type: "update_file", path: "src/run.sh", diff: "", moveTo: "bin/run" });
    expect(await session.exec({ cmd: "ls src; ./bin/run" })).toMatchObject({ stdout: "one\nthree\n" });
    await editor.deleteFile({ type: "delete_file", path: "bin/run" });
    expect(await session.pathExists("bin/run")).toBe(false);
  });

  it("say why they fail, and remove no directories", async () => {
    const session = await newSession({
      manifest: {
        entries: { a: { type: "file", content: "one\n" }, "d/f": { type: "file", content: new Uint8Array([0xff]) } },
      },
    });
    const editor = session.createEditor();
    const update = (path: string) => editor.updateFile({ type: "update_file", path, diff: "-two\n+three\n" });
    await expect(update("a")).rejects.toMatchObject({ code: "apply_patch_invalid_diff" });
    await expect(update("none")).rejects.toMatchObject({ code: "apply_patch_file_not_found" });
    await expect(update("d/f")).rejects.toMatchObject({ code: "apply_patch_decode_error" });
    await expect(editor.deleteFile({ type: "delete_file", path: "d" })).rejects.toMatchObject({
      code: "apply_patch_invalid_path",
    });
    await expect(update("/etc/passwd")).rejects.toThrow("workspace");
    expect(await session.pathExists("d/f")).toBe(true);
  });
});

it("ports are reached", needs("python3"), async () => {
  const session = await newSession();
  await session.execCommand({ cmd: "exec python3 -m http.server 8731 --bind 127.0.0.1", yieldTimeMs: 0 });
  const { host, port } = await session.resolveExposedPort(8731);
  const answer = async (): Promise<number> => (await fetch(`http://${host}:${port}/`)).status;
  await expect.poll(answer, { timeout: 30_000 }).toBe(200);
});

it("nobody else can be the user", async () => {
  const session = await newSession();
  await expect(session.exec({ cmd: "true", runAs: "root" })).rejects.toThrow("A sandbox has one user");
  await expect(session.readFile({ path: "a", runAs: "root" })).rejects.toThrow("A sandbox has one user");
  expect(() => session.createEditor("root")).toThrow("A sandbox has one user");
});
