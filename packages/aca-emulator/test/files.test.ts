import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { Client, older, upload } from "./client.ts";

describe("files", needs("python3"), () => {
  it("can be uploaded, described, listed, read and deleted", async () => {
    await using client = await Client.open();
    const body = upload('ü "quoted".txt', "content");
    const uploaded = await client.call("POST", "files", { body, query: { path: "a/b" } });
    expect(uploaded.status).toBe(200);
    expect(uploaded.json).toMatchObject({ name: 'ü "quoted".txt', type: "file", sizeInBytes: 7, directory: "/a/b" });
    expect(Date.parse(uploaded.json.lastModifiedAt)).not.toBeNaN();
    const name = encodeURIComponent('ü "quoted".txt');
    expect((await client.call("GET", `files/${name}`, { query: { path: "a/b" } })).json).toEqual(uploaded.json);
    expect((await client.call("GET", `files/${name}/content`, { query: { path: "a/b" } })).text).toBe("content");
    expect((await client.call("GET", "files")).json.value).toMatchObject([{ name: "a", type: "directory" }]);
    const all = await client.call("GET", "files", { query: { recursive: "true" } });
    expect(all.json.value.map((each) => each.name)).toEqual(["a", "b", 'ü "quoted".txt']);
    expect(await client.call("DELETE", `files/${name}`, { query: { path: "a/b" } })).toMatchObject({
      status: 204,
      text: "",
    });
    expect((await client.call("GET", `files/${name}`, { query: { path: "a/b" } })).status).toBe(404);
  });

  it("are shared with code in /mnt/data, in both directions", async () => {
    await using client = await Client.open();
    await client.call("POST", "files", { body: upload("in.txt", "from outside") });
    const code = "open('/mnt/data/out.txt', 'w').write(open('/mnt/data/in.txt').read().upper()) and None";
    expect((await client.execute(code)).json.status).toBe("Succeeded");
    expect((await client.call("GET", "files/out.txt/content")).text).toBe("FROM OUTSIDE");
  });

  it("are listed in pages", async () => {
    await using client = await Client.open({ pageSize: 2 });
    for (const name of ["a", "b", "c"]) await client.call("POST", "files", { body: upload(name, "") });
    const first = await client.call("GET", "files");
    expect(first.json.value).toHaveLength(2);
    const next = await fetch(first.json.nextLink, { headers: { authorization: `Bearer ${client.emulator.token()}` } });
    expect(await next.json()).toEqual({ value: [expect.objectContaining({ name: "c" })] });
  });

  it("outside the workspace cannot be reached, whatever path or link a request names", async () => {
    await using client = await Client.open();
    await client.execute(
      "import os; os.chdir('/mnt/data'); os.symlink('/etc', 'out'); os.symlink('/etc/passwd', 'file'); os.symlink('.', 'loop')",
    );
    for (const [path, name] of [
      ["..", "x"],
      ["out", "passwd"],
      ["/", "file"],
      ["out/../..", "x"],
      ["/", ".."],
    ] as const) {
      const reply = await client.call("GET", `files/${encodeURIComponent(name)}/content`, { query: { path } });
      expect(reply.status).toBeGreaterThanOrEqual(400);
      expect(reply.text).not.toMatch(/root:/);
    }
    expect((await client.call("POST", "files", { body: upload("new", "x"), query: { path: "out" } })).status).toBe(400);
    expect((await client.call("GET", "files", { query: { recursive: "true" } })).json.value).toEqual([]);
  });

  it.for<[string, string]>([
    ["nobody reads", "1"],
    ["code reads", "reader = os.open('/mnt/data/pipe', os.O_RDONLY | os.O_NONBLOCK)"],
  ])("cannot be uploaded onto a named pipe that %s", async ([, read]) => {
    await using client = await Client.open();
    await client.execute(`import os; os.mkfifo('/mnt/data/pipe')\n${read}`);
    const reply = await client.call("POST", "files", { body: upload("pipe", "content") });
    expect(reply).toMatchObject({ status: 400, json: { error: { code: "NotAFile" } } });
    const isStillPipe = await client.execute("import stat; stat.S_ISFIFO(os.stat('/mnt/data/pipe').st_mode)");
    expect(isStillPipe.json.result.executionResult).toBe("True");
  });

  it("may not be larger than 128 MB", async () => {
    await using client = await Client.open();
    const form = new FormData();
    form.append("file", new Blob([new Uint8Array(128 * 1024 * 1024 + 100_000)]), "large");
    const reply = await client.call("POST", "files", { body: form }).catch(() => ({ status: 413 }));
    expect(reply.status).toBe(413);
    expect((await client.call("GET", "files")).json.value).toEqual([]);
  });

  it("have a different shape in the older API", async () => {
    await using client = await Client.open();
    const uploaded = await client.call("POST", "files/upload", { body: upload("a.txt", "content"), version: older });
    expect(uploaded.json.value).toMatchObject([{ properties: { filename: "a.txt", size: 7 } }]);
    expect((await client.call("GET", "files", { version: older })).json.value).toMatchObject([
      { properties: { filename: "a.txt", size: 7, lastModifiedTime: expect.any(String) } },
    ]);
    expect((await client.call("GET", "files/content/a.txt", { version: older })).text).toBe("content");
  });
});
