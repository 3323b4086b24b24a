import assert from "node:assert/strict";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { processes, statement } from "../needs.ts";
import { followStream, streamedText } from "../observe/follow-stream.ts";

const text = (name: string, written: string): ConformanceCase => ({
  name,
  async run(kit) {
    const result = await kit.succeedWith(await kit.shared(), kit.language.write(written));
    assert.equal(result.stdout, written);
    assert.equal(result.output, written);
  },
});

const bytes = (name: string, pieces: readonly (readonly number[])[], expected: string): ConformanceCase => ({
  name,
  needs: [processes, statement("writeBytes")],
  async run(kit) {
    const { events, stdout } = await writePieces(kit, pieces);
    assert.equal(stdout, expected);
    assert.equal(streamedText(events, "stdout"), expected, "the stream has the same text");
    for (const event of events) {
      if (event.type !== "stdout") continue;
      assert.doesNotMatch(event.text, /\p{Surrogate}/u, "no event ends in half a character");
    }
  },
});

const balloon = [...new TextEncoder().encode("🎈")];
const umlaut = [...new TextEncoder().encode("ü")];

/** Output is UTF-8, exactly as a program wrote it. */
export const encoding: ConformanceGroup = {
  name: "encoding",
  waits: true,
  cases: [
    text("keeps characters of all Unicode planes", "aé日本🎈👩‍👩‍👧 \u{1D11E} עברית\n"),
    text("keeps CRLF and CR", "a\r\nb\rc\r\n"),
    text("keeps NUL characters", "a\0b\n"),
    text("keeps ANSI sequences", "\u001B[31mred\u001B[0m\n"),
    text("keeps a byte order mark", "\uFEFFmarked\n"),
    bytes(
      "joins a character whose bytes are written one by one",
      balloon.map((byte) => [byte]),
      "🎈",
    ),
    bytes(
      "joins a character that is split across two writes",
      [
        [...umlaut, 0xc3],
        [0xbc, 0x0a],
      ],
      "üü\n",
    ),
    bytes("replaces invalid bytes", [[0x61, 0xff, 0xfe, 0x62, 0x0a]], "a\uFFFD\uFFFDb\n"),
    bytes("replaces an incomplete character within the output", [[0x61, 0xf0, 0x9f, 0x62, 0x0a]], "a\uFFFDb\n"),
    bytes("replaces an incomplete character at the end of the output", [[0x61, 0xf0, 0x9f]], "a\uFFFD"),
  ],
};

async function writePieces(kit: CaseContext, pieces: readonly (readonly number[])[]) {
  const { language } = kit;
  const statements = pieces.flatMap((piece) => [language.writeBytes?.(piece) ?? "", language.sleep(150)]);
  const executor = await kit.shared();
  const followed = followStream(executor.streamCodeBlocks([language.program(...statements)]));
  const { stdout } = await kit.within("the stream", followed.result);
  return { events: followed.events, stdout };
}
