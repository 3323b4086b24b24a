import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough, Duplex } from "node:stream";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { nightly, slow } from "@fenced/test-support";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FileRequests } from "../src/files/file-requests.ts";
import { Tree } from "../src/files/tree.ts";
import { WasmCodeExecutor } from "../src/index.ts";
import { FrameChannel, ProtocolError, unpack } from "../src/interpreter/frames.ts";

const block = { language: "python", code: "print(6 * 7)" };

describe("the snapshot", slow, () => {
  let cacheDirectory = "";
  beforeEach(() => {
    cacheDirectory = path.join(fs.mkdtempSync(path.join(tmpdir(), "fenced-wasm-test-")), "cache");
  });
  afterEach(() => fs.rmSync(path.dirname(cacheDirectory), { recursive: true, force: true }));

  const run = async (): Promise<string> => {
    await using executor = new WasmCodeExecutor({ cacheDirectory });
    return (await executor.executeCodeBlocks([block])).output;
  };

  it(
    "is readable only by its owner, and does not keep the interpreter from starting if it is damaged",
    { timeout: 240_000 },
    async () => {
      expect(await run()).toBe("42\n");
      const [name = ""] = fs.readdirSync(cacheDirectory);
      const file = path.join(cacheDirectory, name);
      expect(fs.statSync(file).mode & 0o777).toBe(0o600);
      expect(fs.statSync(cacheDirectory).mode & 0o777).toBe(0o700);
      const descriptor = fs.openSync(file, "r+");
      fs.writeSync(descriptor, Buffer.alloc(4096, 7), 0, 4096, 20_000_000);
      fs.closeSync(descriptor);
      expect(await run()).toBe("42\n");
      // Created again.
      expect(fs.readFileSync(file).subarray(20_000_000, 20_004_096)).not.toEqual(Buffer.alloc(4096, 7));
    },
  );

  it("replaces the oldest ones of other versions", { timeout: 240_000, ...nightly }, async () => {
    fs.mkdirSync(cacheDirectory, { mode: 0o700 });
    for (let age = 1; age <= 9; age += 1) {
      const file = path.join(cacheDirectory, `python-${age}.snapshot`);
      fs.writeFileSync(file, "");
      fs.utimesSync(file, Date.now() / 1000 - age, Date.now() / 1000 - age);
    }
    expect(await run()).toBe("42\n");
    const kept = fs.readdirSync(cacheDirectory).filter((name) => /^python-\d\./.test(name));
    expect(kept.toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7].map((age) => `python-${age}.snapshot`));
  });

  it(
    "is neither read from nor written to a directory that others may write to",
    { timeout: 240_000, ...nightly },
    async () => {
      fs.mkdirSync(cacheDirectory);
      fs.chmodSync(cacheDirectory, 0o777);
      expect(await run()).toBe("42\n");
      expect(fs.readdirSync(cacheDirectory)).toEqual([]);
    },
  );
});

it.runIf(process.platform === "linux")(
  "the interpreter dies when its host program is killed",
  { timeout: 240_000 },
  async () => {
    const program = path.join(import.meta.dirname, "fixtures/endless.ts");
    const host = spawn(process.execPath, ["--conditions=@fenced/source", "--import", "tsx", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [id] = (await once(host.stdout, "data")).map(String);
    const ofSession = async (): Promise<number> =>
      (await listProcesses()).filter(({ pid }) => hasVariable(pid, "FENCED_SESSION", id?.trim() ?? "")).length;
    // Those of the OS sandbox around it count, too.
    expect(await ofSession()).toBeGreaterThan(0);
    host.kill("SIGKILL");
    await vi.waitFor(async () => expect(await ofSession()).toBe(0), { timeout: 60_000 });
  },
);

describe("what the process sends", () => {
  const channelOf = (...bytes: readonly Buffer[]): FrameChannel => {
    const incoming = new PassThrough();
    for (const each of bytes) incoming.write(each);
    incoming.end();
    return new FrameChannel(Duplex.from({ readable: incoming, writable: new PassThrough() }));
  };
  const frame = (type: number, body: Buffer, length = body.length): Buffer => {
    const header = Buffer.alloc(5);
    header.writeUInt32BE(length);
    header.writeUInt8(type, 4);
    return Buffer.concat([header, body]);
  };

  it("is read frame by frame, however it is split", async () => {
    const whole = Buffer.concat([
      frame(1, Buffer.from("one")),
      frame(2, Buffer.alloc(0)),
      frame(3, Buffer.from("three")),
    ]);
    const channel = channelOf(...Array.from(whole, (byte) => Buffer.of(byte)));
    const frames = [await channel.next(), await channel.next(), await channel.next(), await channel.next()];
    expect(frames.map((each) => each && [each.type, String(each.body)])).toEqual([
      [1, "one"],
      [2, ""],
      [3, "three"],
      undefined,
    ]);
  });

  it("is rejected before it is read if a frame claims to be larger than allowed", async () => {
    await expect(channelOf(frame(1, Buffer.alloc(0), 0xffff_ffff)).next()).rejects.toThrow(ProtocolError);
  });

  it("is rejected if it is malformed", () => {
    for (const body of ["", "abc", "\0\0\0\u0009{}", "\0\0\0\u0002{]"]) {
      expect(() => unpack(Buffer.from(body))).toThrow(ProtocolError);
    }
  });

  it("cannot ask for anything outside its files", () => {
    const tree = new Tree(1_048_576);
    const requests = new FileRequests(tree);
    const ask = (fields: unknown): object => requests.answer(fields, Buffer.from("x")).fields;
    for (const fields of [
      undefined,
      null,
      "stat",
      { op: "exec", path: "a" },
      { op: "stat", path: 1 },
      { op: "make", path: "../a", kind: "file", mode: 0o644 },
      { op: "make", path: "a//b", kind: "file", mode: 0o644 },
      { op: "make", path: "a\0b", kind: "file", mode: 0o644 },
      { op: "make", path: "a", kind: "device", mode: 0o644 },
      { op: "make", path: "a", kind: "file", mode: 0o4755 },
      { op: "change", path: "", modifiedAt: 1e16 },
      { op: "read", handle: 1, at: 0, length: 2 ** 40 },
      { op: "read", handle: 1, at: -1, length: 1 },
      { op: "rename", path: "", to: "x" },
      { op: "unlink", path: "." },
    ]) {
      expect([fields, ask(fields)]).toEqual([fields, { error: "EINVAL" }]);
    }
    expect(ask({ op: "read", handle: 7, at: 0, length: 1 })).toEqual({ error: "EBADF" });
    expect(ask({ op: "make", path: "__proto__", kind: "file", mode: 0o644 })).toEqual({});
    expect(ask({ op: "list", path: "" })).toEqual({ names: ["__proto__"] });
    expect(ask({ op: "make", path: "x".repeat(256), kind: "file", mode: 0o644 })).toEqual({ error: "ENAMETOOLONG" });
    expect(ask({ op: "open", path: "__proto__" })).toEqual({ handle: 1 });
    expect(ask({ op: "write", handle: 1, at: Number.MAX_SAFE_INTEGER - 8 })).toEqual({});
    for (let count = 0; count < 1023; count += 1) ask({ op: "open", path: "__proto__" });
    expect(ask({ op: "open", path: "__proto__" })).toEqual({ error: "EMFILE" });
  });

  it("gets the names in a large directory in parts", () => {
    const tree = new Tree(16 * 1_048_576);
    for (let number = 0; number < 5000; number += 1) tree.makeDirectory(`d${number}`);
    const requests = new FileRequests(tree);
    const ask = (from: number): object => requests.answer({ op: "list", path: "", from }, Buffer.alloc(0)).fields;
    const all = [...tree.root.entries.keys()];
    expect(ask(0)).toEqual({ names: all.slice(0, 4096), more: true });
    expect(ask(4096)).toEqual({ names: all.slice(4096) });
    expect(ask(5000)).toEqual({ names: [] });
  });
});
