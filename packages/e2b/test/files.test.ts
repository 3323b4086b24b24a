import { needs } from "@fenced/test-support";
import { FileNotFoundError, FilesystemEventType, InvalidArgumentError, Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "./support/start-server.ts";

describe("files", needs("python3", "bash"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  let home = "";
  beforeAll(async () => {
    server = await startServer();
    sandbox = await Sandbox.create("base", server.client);
    home = (await sandbox.commands.run("pwd -P")).stdout.trim();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it("are written, read in each form, moved and removed", async () => {
    const bytes = Buffer.from(Array.from({ length: 700_000 }, (_, index) => index % 251));
    await sandbox.files.write("made/below/bytes.bin", new Blob([bytes]));
    expect(Buffer.from(await sandbox.files.read("made/below/bytes.bin", { format: "bytes" })).equals(bytes)).toBe(true);
    await sandbox.files.write("empty.txt", "");
    expect(await sandbox.files.read("empty.txt")).toBe("");
    await sandbox.files.write([
      { path: "one.txt", data: "1" },
      { path: "two.txt", data: "2" },
    ]);
    await sandbox.files.rename("one.txt", "moved/one.txt");
    expect(await sandbox.files.read("moved/one.txt")).toBe("1");
    await sandbox.files.remove("moved");
    await sandbox.files.remove("moved");
    expect(await sandbox.files.exists("moved/one.txt")).toBe(false);
    await expect(sandbox.files.read("moved/one.txt")).rejects.toBeInstanceOf(FileNotFoundError);
    await expect(sandbox.files.read("made")).rejects.toBeInstanceOf(InvalidArgumentError);
  });

  it("are described and listed to a depth", async () => {
    await sandbox.files.write("tree/a/b/c.txt", "text");
    await sandbox.commands.run("ln -s a/b/c.txt tree/link; ln -s nowhere tree/broken; mkfifo tree/pipe");
    const info = await sandbox.files.getInfo("tree/link");
    expect(info).toMatchObject({ name: "link", type: "file", symlinkTarget: `${home}/tree/a/b/c.txt` });
    expect(info.permissions).toMatch(/^L/);
    expect(await sandbox.files.getInfo("tree/a/b/c.txt")).toMatchObject({ owner: "user", mode: 0o644, size: 4 });
    const paths = async (depth: number) => (await sandbox.files.list("tree", { depth })).map(({ path }) => path);
    // The client leaves out what is neither a file nor a directory.
    expect(await paths(1)).toEqual(["a", "link"].map((name) => `${home}/tree/${name}`));
    expect(await paths(3)).toContain(`${home}/tree/a/b/c.txt`);
    await expect(sandbox.files.list("missing")).rejects.toBeInstanceOf(FileNotFoundError);
    // Reading a named pipe would wait for its other end.
    await expect(sandbox.files.read("tree/pipe")).rejects.toThrow(/is not a file/);
    expect([await sandbox.files.makeDir("tree/new"), await sandbox.files.makeDir("tree/new")]).toEqual([true, false]);
  });

  it("are watched, also in directories that are made later", async () => {
    await sandbox.files.makeDir("watched");
    const events: string[] = [];
    const watch = await sandbox.files.watchDir("watched", ({ type, name }) => void events.push(`${type} ${name}`), {
      recursive: true,
    });
    await sandbox.files.write("watched/new/file.txt", "text");
    await expect
      .poll(() => events)
      .toEqual(
        expect.arrayContaining([
          `${FilesystemEventType.CREATE} new`,
          `${FilesystemEventType.CREATE} new/file.txt`,
          `${FilesystemEventType.WRITE} new/file.txt`,
        ]),
      );
    await sandbox.files.remove("watched/new/file.txt");
    await expect.poll(() => events).toContain(`${FilesystemEventType.REMOVE} new/file.txt`);
    await watch.stop();
    await expect(sandbox.files.watchDir("missing", () => {})).rejects.toBeInstanceOf(FileNotFoundError);
  });

  it("have signed addresses, which expire and are for one file and one direction", async () => {
    await sandbox.files.write("signed.txt", "content");
    const download = await sandbox.downloadUrl("signed.txt", { useSignatureExpiration: 60_000 });
    expect(await (await fetch(download)).text()).toBe("content");
    const range = await fetch(download, { headers: { range: "bytes=2-4" } });
    expect([range.status, await range.text(), range.headers.get("content-range")]).toEqual([206, "nte", "bytes 2-4/7"]);
    expect((await fetch(download.replace("signed.txt", "other.txt"))).status).toBe(401);
    expect((await fetch(download, { method: "POST", body: new FormData() })).status).toBe(401);
    const expired = await fetch(await sandbox.downloadUrl("signed.txt", { useSignatureExpiration: -60_000 }));
    expect(await expired.json()).toEqual({ code: 401, message: "signature is already expired" });
    const upload = await sandbox.uploadUrl("uploaded.txt", { useSignatureExpiration: 60_000 });
    const form = new FormData();
    form.append("file", "from a form");
    expect((await fetch(upload, { method: "POST", body: form })).status).toBe(200);
    expect(await sandbox.files.read("uploaded.txt")).toBe("from a form");
  });

  it("serve again after code has killed what serves them", async () => {
    await sandbox.files.write("before.txt", "before");
    const guests = "for p in $(pgrep -f '[T]he files of a sandbox'); do";
    await sandbox.commands.run(`${guests} [ "$(readlink /proc/$p/cwd)" = "$(pwd -P)" ] && kill -KILL $p; done; true`);
    await expect.poll(() => sandbox.files.read("before.txt").catch(() => "")).toBe("before");
  });
});
