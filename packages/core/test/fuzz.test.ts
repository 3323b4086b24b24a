import { fc, fuzz, outcomeOf } from "@fenced/test-support/fuzz";
import { expect, test } from "vitest";
import { extractCodeBlocks, measureJson, parseJson } from "../src/index.ts";
import { readEventStream } from "../src/web/index.ts";

const pieces = [
  "```",
  "~~~",
  "````",
  "python",
  "\n",
  "\r\n",
  "\r",
  " ",
  "    ",
  "\t",
  "> ",
  "- ",
  "1. ",
  "<answer>",
  "</think>",
  "<!--",
  "x",
  "\u{feff}",
  "\0",
  "é",
];
const markdown = fc.array(fc.constantFrom(...pieces), { maxLength: 60 }).map((parts) => parts.join(""));

test("the code of a block is part of the text", () => {
  fuzz(
    fc.property(markdown, (text) => {
      for (const { language, code } of extractCodeBlocks(text)) {
        expect(typeof language).toBe("string");
        // As in CommonMark, NUL becomes the replacement character.
        for (const line of code.split(/[\r\n]+/)) expect(text.replaceAll("\0", "\u{fffd}")).toContain(line.trim());
      }
    }),
  );
});

test("whatever code is put into a longer fence comes out of it", () => {
  const line = fc.array(fc.constantFrom(...pieces.filter((piece) => !/[\r\n\0]/.test(piece))), { maxLength: 8 });
  fuzz(
    fc.property(
      fc.array(
        line.map((parts) => parts.join("")),
        { minLength: 1, maxLength: 8 },
      ),
      (lines) => {
        const code = lines.join("\n");
        const longest = Math.max(2, ...(code.match(/`+/g) ?? []).map((run) => run.length));
        const fence = "`".repeat(longest + 1);
        expect(extractCodeBlocks(`Text.\n\n${fence}python\n${code}\n${fence}\n`)).toMatchObject([{ code }]);
      },
    ),
  );
});

/** The number of values, of which each item and each field is one. */
function valuesOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce((sum: number, each) => sum + valuesOf(each), 1);
}

test("JSON has at most as many values as were counted, and parses to the same", () => {
  fuzz(
    fc.property(fc.json(), (text) => {
      const parsed: unknown = JSON.parse(text);
      expect(parseJson(text)).toEqual(parsed);
      expect(measureJson(text)).toBeGreaterThanOrEqual(valuesOf(parsed));
    }),
  );
});

test("text that is almost JSON is refused, or parses as JSON.parse does", () => {
  const tokens = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "\\",
    "1",
    "-",
    "e",
    "null",
    '"a"',
    " ",
    "\n",
    "\u2028",
  );
  fuzz(
    fc.property(
      fc.array(tokens, { maxLength: 30 }).map((parts) => parts.join("")),
      (text) => {
        const outcome = outcomeOf(() => parseJson(text, { maxValues: 20, maxDepth: 8 }));
        expect([outcomeOf(() => JSON.parse(text) as unknown), "JsonLimitError"]).toContainEqual(outcome);
      },
    ),
  );
});

test("an event stream is the same however it is cut into chunks", async () => {
  const line = fc.constantFrom(
    "data: ",
    "data:",
    ": comment",
    "event: end",
    "id: 1",
    "retry: 5",
    '{"a":"é"}',
    "",
    "x",
    "\u{feff}",
  );
  const stream = fc.array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n", "\n\n")), { maxLength: 20 });
  await fuzz(
    fc.asyncProperty(stream, fc.infiniteStream(fc.integer({ min: 1, max: 5 })), async (lines, sizes) => {
      const bytes = new TextEncoder().encode(lines.flat().join(""));
      expect(await read([bytes])).toEqual(await read(cut(bytes, sizes)));
    }),
  );
});

function* cut(bytes: Uint8Array, sizes: Iterator<number>): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    const size = Number(sizes.next().value);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

/** All events, and how reading ended. */
async function read(chunks: Iterable<Uint8Array>): Promise<unknown[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const events: unknown[] = [];
  try {
    const response = new Response(body, { headers: { "content-type": "text/event-stream" } });
    for await (const event of readEventStream(response)) events.push(event);
  } catch (error) {
    events.push(error instanceof Error ? error.message : error);
  }
  return events;
}
