import { createHash, randomInt } from "node:crypto";
import { blockEnvironment } from "@fenced/executor-kit";
import { needs, nightly } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { type Change, KeptPlace, relayed, type Streams } from "../../support/kept-place.ts";
import { TextSink } from "../../support/text-sink.ts";

/** Numbers that a seed repeats. */
function numbersOf(seed: number): (most: number) => number {
  let state = seed;
  return (most) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9;
    const mixed = Math.imul(state ^ (state >>> 13), 0x297a2d39);
    return ((mixed ^ (mixed >>> 16)) >>> 0) % most;
  };
}

/** Passes so many bytes on, and then what `change` does. */
function later(count: number, change: Change): Change {
  let left = count;
  return (chunk, cut) => {
    left -= chunk.length;
    return left >= 0 ? chunk : change(chunk, cut);
  };
}

/** Prints a megabyte of lines, with the number of each, and says what it has read. */
const printing = `
import hashlib, sys
for line in range(65536):
    sys.stdout.write("%015d\\n" % line)
sys.stdout.flush()
print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())
`;

describe.skipIf(process.platform !== "linux")("a connection that breaks", needs("python3"), () => {
  it("carries each byte exactly once and in order over 30 cuts", async () => {
    expect(await survive(30)).toBe(30);
  });

  it("carries each byte exactly once and in order over 200 cuts", { timeout: 300_000, ...nightly }, async () => {
    expect(await survive(200)).toBe(200);
  });
});

/** Prints and reads while connections break; returns how often they did. */
async function survive(cuts: number): Promise<number> {
  const seed = randomInt(2 ** 31);
  const number = numbersOf(seed);
  const place = await KeptPlace.open(30_000);
  const done = { cuts: 0 };
  /** Breaks connections after a random number of bytes, most of them in the middle of a packet. */
  const breaking = (): Change => {
    let left = number(3) === 0 ? number(400) : number(60_000);
    return (chunk, end) => {
      const whole = left >= chunk.length || done.cuts >= cuts;
      const passed = whole ? chunk : chunk.subarray(0, left);
      left -= passed.length;
      if (!whole) {
        done.cuts += 1;
        end();
      }
      return passed;
    };
  };
  const connect = (): Promise<Streams> => {
    const streams = place.attach();
    return Promise.resolve(relayed(streams, { up: breaking(), down: breaking() }));
  };
  const { supervisor, link } = await place.connect({
    // The end of this one is the end of the session, until it has brought the key.
    first: relayed(place.first, { down: later(2000, breaking()) }),
    connect,
  });
  const input = Buffer.alloc(1_048_576, "0123456789abcdef\n");
  const expected = Array.from({ length: 65_536 }, (_, line) => `${String(line).padStart(15, "0")}\n`).join("");
  const digest = createHash("sha256").update(input).digest("hex");
  for (let block = 0; done.cuts < cuts; block += 1) {
    const output = new TextSink();
    await supervisor.run({ argv: ["python3", "-c", printing], env: blockEnvironment, stdin: input.toString() }, output);
    const found = output.stdout === `${expected}${digest}\n`;
    expect(found, `seed ${seed}, block ${block}, ${done.cuts} cuts`).toBe(true);
  }
  expect(link.isReplaced).toBe(false);
  await link.end();
  await place.over();
  return done.cuts;
}
