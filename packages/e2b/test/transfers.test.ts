import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { needs } from "@fenced/test-support";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { headersFor, rawRequest } from "./support/raw-request.ts";
import { startServer, type TestServer } from "./support/start-server.ts";

/** Descriptors that a sandbox's file service has open for files of this name. */
const openDescriptors = (name: string): string =>
  `for p in $(pgrep -f '[T]he files of a sandbox'); do ls -l /proc/$p/fd; done 2>/dev/null | grep -c ${name} || true`;

describe("transfers that break", needs("python3", "bash"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  let headers: Record<string, string> = {};
  beforeAll(async () => {
    server = await startServer();
    sandbox = await Sandbox.create("base", server.client);
    headers = headersFor(sandbox);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const open = async (name: string) => (await sandbox.commands.run(openDescriptors(name))).stdout.trim();
  const multipart = "multipart/form-data; boundary=bound";
  const part = '--bound\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nsome';

  it.each([
    // More than what is written in one step, of which nothing is left if it breaks.
    ["multipart", { "content-type": multipart }, Buffer.concat([Buffer.from(part), Buffer.alloc(400_000)])],
    ["plain", { "content-type": "application/octet-stream" }, Buffer.alloc(400_000)],
    [
      "compressed",
      { "content-type": "application/octet-stream", "content-encoding": "gzip" },
      gzipSync(randomBytes(1_000_000)).subarray(0, 600_000),
    ],
  ])("leave no file open: %s uploads", async (what, more, body) => {
    const name = `broken-${what}-upload`;
    const all = { ...headers, ...more, "content-length": "1000000" };
    const socket = rawRequest(server.url, `POST /files?path=${name}`, all);
    socket.write(body);
    await expect.poll(() => sandbox.files.exists(name), { timeout: 60_000 }).toBe(true);
    socket.destroy();
    await expect.poll(() => open(name), { timeout: 60_000 }).toBe("0");
  });

  it.each([
    ["an end that is missing", { "content-type": multipart }, Buffer.from(part)],
    ["gzip that is none", { "content-type": "application/octet-stream", "content-encoding": "gzip" }, Buffer.from("x")],
  ])("are refused, and leave no file open: %s", async (_what, more, body) => {
    const name = `wrong-${body.length}-upload`;
    const init = { method: "POST", headers: { ...headers, ...more }, body };
    expect((await fetch(`${server.url}/files?path=${name}`, init)).status).toBe(400);
    await expect.poll(() => open(name)).toBe("0");
  });

  it("leave no file open: downloads", async () => {
    await sandbox.commands.run("head -c 30000000 /dev/urandom > left-download");
    for (let times = 0; times < 20; times += 1) {
      const more: Record<string, string> = times % 2 === 0 ? {} : { "accept-encoding": "gzip" };
      const socket = rawRequest(server.url, "GET /files?path=left-download", { ...headers, ...more });
      await sleep(2 * times);
      socket.destroy();
    }
    await expect.poll(() => open("left-download")).toBe("0");
  });

  it.each([
    ["plain", { "content-type": "application/octet-stream" }],
    ["multipart", { "content-type": multipart }],
  ])("say why they are refused, also to a client that is still sending: %s", async (_what, more) => {
    await sandbox.files.makeDir("directory");
    const length = 20_000_000;
    const all = { ...headers, ...more, "content-length": String(length + part.length) };
    const socket = rawRequest(server.url, "POST /files?path=directory", all);
    const heard = text(socket);
    socket.write(part);
    await sleep(300);
    // All of it is read, so the connection can be used again.
    socket.end(Buffer.alloc(length));
    expect(await heard).toMatch(/^HTTP\/1.1 400 [^]*connection: keep-alive[^]*directory/i);
  });

  it("of too many files are refused, instead of leaving some out", async () => {
    const parts = Array.from(
      { length: 10_001 },
      () => '--bound\r\nContent-Disposition: form-data; name="file"\r\n\r\n\r\n',
    );
    const body = `${parts.join("")}--bound--\r\n`;
    const init = { method: "POST", headers: { ...headers, "content-type": multipart }, body };
    const answer = await fetch(`${server.url}/files`, init);
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { code: 400, message: "Send at most 10000 files at once" },
    ]);
  });

  it("cannot move within one file system only", async () => {
    await sandbox.files.write("moved.txt", "moved");
    const target = `/dev/shm/${sandbox.sandboxId}`;
    await sandbox.files.rename("moved.txt", target);
    expect([await sandbox.files.read(target), await sandbox.files.exists("moved.txt")]).toEqual(["moved", false]);
    await sandbox.files.remove(target);
  });
});

describe("transfers", needs("python3", "bash"), () => {
  it.each([0, 1, 262_143, 262_144, 262_145, 600_000])("are the same on both sides with %d bytes", async (size) => {
    await using server = await startServer();
    const sandbox = await Sandbox.create("base", server.client);
    const bytes = Uint8Array.from({ length: size }, (_, index) => (index * 7) % 251);
    await sandbox.files.write("first", new Blob([bytes]).stream(), { useOctetStream: true, metadata: { a: "b" } });
    await sandbox.files.write("second", new Blob([bytes]));
    for (const name of ["first", "second"]) {
      expect(Buffer.compare(await sandbox.files.read(name, { format: "bytes" }), bytes)).toBe(0);
      const plain = await fetch(`${server.url}/files?path=${name}`, {
        headers: { ...headersFor(sandbox), "accept-encoding": "identity" },
      });
      expect(Buffer.compare(Buffer.from(await plain.arrayBuffer()), bytes)).toBe(0);
    }
    expect((await sandbox.files.getInfo("first")).metadata).toEqual({ a: "b" });
  });
});
