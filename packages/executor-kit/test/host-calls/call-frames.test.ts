import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { callFrame, readCallFrames } from "../../src/host-calls/call-frames.ts";
import { encodeFrame } from "../../src/supervisor/wire/wire.ts";

const hello = encodeFrame(callFrame.hello, 0, Buffer.from("token"));

async function read(pieces: Iterable<Buffer>) {
  const frames: string[] = [];
  for await (const { type, id, payload } of readCallFrames(Readable.from(pieces))) {
    frames.push(`${type} ${id} ${payload.toString()}`);
  }
  return frames;
}

function* cut(bytes: Buffer, size: number) {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

it("frames are the same however they are split into pieces", async () => {
  const bytes = Buffer.concat([
    hello,
    encodeFrame(callFrame.call, 7, Buffer.from("add\n{}")),
    encodeFrame(callFrame.cancel, 7, Buffer.alloc(0)),
    encodeFrame(callFrame.call, 8, Buffer.from("x".repeat(1000))),
  ]);
  const expected = ["1 0 token", "2 7 add\n{}", "3 7 ", `2 8 ${"x".repeat(1000)}`];
  for (const size of [1, 2, 3, 5, 8, 13, 100, bytes.length]) expect(await read(cut(bytes, size))).toEqual(expected);
});

it("a long frame can arrive in pieces of one byte", async () => {
  const long = "x".repeat(100_000);
  const bytes = Buffer.concat([hello, encodeFrame(callFrame.call, 1, Buffer.from(long))]);
  expect(await read(cut(bytes, 1))).toEqual(["1 0 token", `2 1 ${long}`]);
});

it("a frame that is too long is rejected before it is read, with a lower limit for the first one", async () => {
  const claim = (length: number): Buffer => {
    const header = Buffer.alloc(9);
    header.writeUInt32BE(length, 0);
    return header;
  };
  await expect(read([claim(262)])).rejects.toThrow("this is not a valid call frame");
  await expect(read([claim(4)])).rejects.toThrow("this is not a valid call frame");
  await expect(read([hello, claim(1_048_576 + 262)])).rejects.toThrow("this is not a valid call frame");
  expect(await read([hello, claim(1_048_576 + 261)])).toEqual(["1 0 token"]);
});
