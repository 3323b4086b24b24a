import { fc, fuzz } from "@fenced/test-support/fuzz";
import { expect, test } from "vitest";
import { encodeFrame, FrameReader, frameType } from "../../src/supervisor/wire/wire.ts";

/** What a reader makes of bytes in chunks, with neighbouring pieces of output joined, and whether it refused them. */
function readFrames(chunks: readonly Buffer[]): unknown[] {
  const seen: [string, number, string][] = [];
  const reader = new FrameReader({
    output(type, block, bytes) {
      const last = seen.at(-1);
      if (last?.[0] === type && last[1] === block) last[2] += bytes.toString("hex");
      else seen.push([type, block, bytes.toString("hex")]);
    },
    report: (type, block, payload) => void seen.push([String(type), block, payload.toString("hex")]),
  });
  try {
    for (const chunk of chunks) reader.push(chunk);
  } catch (error) {
    return [...seen, error instanceof Error ? error.message : error];
  }
  return seen;
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] ?? 1;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 });
const number = fc.nat(2 ** 32 - 1);
const payload = fc.uint8Array({ maxLength: 40 });
const toHost = fc.integer({ min: frameType.hello, max: frameType.display });

test("frames are the same however the stream is cut into chunks", () => {
  fuzz(
    fc.property(fc.array(fc.tuple(toHost, number, payload), { maxLength: 8 }), sizes, (frames, cuts) => {
      const bytes = Buffer.concat(frames.map((frame) => encodeFrame(...frame)));
      expect(readFrames(cut(bytes, cuts))).toEqual(readFrames([bytes]));
    }),
  );
});

test("bytes that are no frames are refused in one way, or wait for more", () => {
  const damaged = fc
    .tuple(
      fc.array(fc.tuple(toHost, number, payload), { maxLength: 4 }),
      fc.uint8Array({ maxLength: 20 }),
      fc.nat(),
      fc.nat(255),
    )
    .map(([frames, noise, at, byte]) => {
      const bytes = Buffer.concat([...frames.map((frame) => encodeFrame(...frame)), noise]);
      if (bytes.length > 0) bytes[at % bytes.length] = byte;
      return bytes;
    });
  fuzz(
    fc.property(damaged, sizes, (bytes, cuts) => {
      const whole = readFrames([bytes]);
      expect(readFrames(cut(bytes, cuts))).toEqual(whole);
      const errors = new Set(whole.filter((each) => typeof each === "string"));
      errors.delete("the supervisor's stream is not valid");
      expect([...errors]).toEqual([]);
    }),
  );
});
