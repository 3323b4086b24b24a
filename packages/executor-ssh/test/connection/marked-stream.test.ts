import { describe, expect, it } from "vitest";
import { MarkedStream } from "../../src/connection/marked-stream.ts";

const mark = "\u001Efenced-nonce:";
const whole = `noise ${mark}begin 42\nout \u001E${mark.slice(0, 5)} put${mark}made up\nmore${mark}exit 3\nlate`;

function read(pieces: readonly Buffer[]): { text: string; stream: MarkedStream } {
  const stream = new MarkedStream("nonce");
  const text = pieces.flatMap((piece) => stream.push(piece).map((each) => each.toString())).join("");
  return { text, stream };
}

describe("MarkedStream", () => {
  it("extracts what is between the marks, wherever the stream is split", () => {
    const bytes = Buffer.from(whole);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const { text, stream } = read([bytes.subarray(0, cut), bytes.subarray(cut)]);
      expect(text).toBe(`out \u001E${mark.slice(0, 5)} put${mark}made up\nmore`);
      expect(stream).toMatchObject({ begun: true, leader: 42, ending: "exit 3", noise: "noise " });
    }
    expect(read([...bytes].map((byte) => Buffer.from([byte]))).text).toContain("made up\nmore");
  });

  it("passes on at once what cannot be a mark", () => {
    const stream = new MarkedStream("nonce");
    stream.push(Buffer.from(`${mark}begin\n`));
    expect(stream.push(Buffer.from("partial")).map(String)).toEqual(["partial"]);
    expect(stream.ending).toBeUndefined();
  });

  it("takes only the first mark as the beginning, and a line that is too long as output", () => {
    const forged = `${mark}begin 7\n${mark}${"x".repeat(20_000)}`;
    const { text, stream } = read([Buffer.from(`${mark}begin\n${forged}`), Buffer.from(`\n${mark}exit 0\n`)]);
    expect(text).toBe(`${forged}\n`);
    expect(stream).toMatchObject({ begun: true, leader: undefined, ending: "exit 0" });
  });

  it("reports why something was refused", () => {
    expect(read([Buffer.from(`${mark}begin\n${mark}refused EACCES no way in\n`)]).stream.ending).toBe(
      "refused EACCES no way in",
    );
  });
});
