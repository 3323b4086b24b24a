import assert from "node:assert/strict";
import { InvalidInputError } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { followStream, streamedText } from "../observe/follow-stream.ts";
import { MemoryWatch } from "../observe/memory-watch.ts";
import { withDoubledTime } from "../observe/until-running.ts";
import type { SharedOptions } from "../shared-executors.ts";

const limit = 4096;
const limited: SharedOptions = () => ({ maxOutputBytes: limit });
const mebibyte = 1024 * 1024;

/** Where output goes, and how much of it is kept. */
export const output: ConformanceGroup = {
  name: "output",
  cases: [
    {
      name: "separates standard output from standard error, and combines both in order",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const { result } = await withDoubledTime(kit, 800, async (milliseconds) => {
          const statements = ["1", "2", "3", "4"].flatMap((text, index) => [
            language.write(`${text}\n`, index % 2 === 0 ? "stdout" : "stderr"),
            // Two pipes have no common clock, so only a pause makes the order observable: one in which what reads them is not held up.
            language.sleep(milliseconds / 4),
          ]);
          const ended = await kit.succeed(executor, language.program(...statements), { timeoutMs: kit.patienceMs });
          return { wasEnough: ended.output === "1\n2\n3\n4\n", result: ended };
        });
        assert.equal(result.stdout, "1\n3\n");
        assert.equal(result.stderr, "2\n4\n");
        assert.equal(result.output, "1\n2\n3\n4\n");
      },
    },
    {
      name: "keeps 10,000 lines in order",
      async run(kit) {
        const result = await kit.succeedWith(await kit.shared(), kit.language.lines(10_000));
        assert.equal(result.truncated, false);
        assert.equal(result.stdout, Array.from({ length: 10_000 }, (_, line) => `line ${line}\n`).join(""));
      },
    },
    {
      name: "is empty for a program that writes nothing",
      async run(kit) {
        const result = await kit.succeedWith(await kit.shared(), kit.language.nothing());
        assert.deepEqual([result.output, result.stdout, result.stderr], ["", "", ""]);
      },
    },
    {
      name: "neither adds nor removes a newline at the end",
      async run(kit) {
        const { language } = kit;
        const result = await kit.succeed(await kit.shared(), [
          language.program(language.write("no newline")),
          language.program(language.write("\n\ntwo before, three after\n\n\n")),
        ]);
        assert.equal(result.stdout, "no newline\n\ntwo before, three after\n\n\n");
      },
    },
    {
      name: "keeps the head and tail of output over the limit, and marks the cut with its size",
      async run(kit) {
        const result = await runOver(kit, "stdout");
        assert.equal(result.stdout, result.output);
        assertCut(result.output, 2 * 7 + 100_000);
      },
    },
    {
      name: "applies the same limit to standard error",
      async run(kit) {
        const result = await runOver(kit, "stderr");
        assertCut(result.stderr, 2 * 7 + 100_000);
        assert.equal(result.stdout, "");
      },
    },
    {
      name: "does not cut output that is exactly as long as the limit",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared(limited);
        const exact = await kit.succeedWith(executor, language.fill("x", limit));
        assert.equal(exact.truncated, false);
        assert.equal(exact.output, "x".repeat(limit));
        const over = await kit.succeedWith(executor, language.fill("x", limit + 1));
        assert.equal(over.truncated, true);
      },
    },
    {
      name: "applies the limit to all blocks of a run together",
      async run(kit) {
        const { language } = kit;
        const most = language.program(language.fill("x", limit - 100));
        const result = await kit.succeed(await kit.shared(limited), [most, most, most]);
        assert.deepEqual(
          result.blocks.map(({ truncated, output: text }) => [truncated, (text.match(/x/g) ?? []).length]),
          [
            [false, limit - 100],
            [true, 100],
            [true, 0],
          ],
        );
        assert.equal(result.truncated, true);
        assert.equal(result.output, result.blocks.map(({ output: text }) => text).join(""));
        const json = JSON.stringify(result);
        assert.ok(json.length < limit + 2048, `${json.length} characters of JSON hold each byte of output once`);
      },
    },
    {
      name: "cuts between characters",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared(limited);
        // Lengths without a common factor with the limit, so that one of the cuts falls within a character.
        for (const prefix of ["", "a", "ab"]) {
          const result = await kit.succeedWith(executor, language.print(`${prefix}${"日".repeat(3000)}`));
          assert.equal(result.truncated, true);
          assert.ok(!result.output.includes("\uFFFD"), "no half characters at the cut");
        }
      },
    },
    {
      name: "throws InvalidInputError for an invalid limit",
      async run(kit) {
        for (const maxOutputBytes of [-1, Number.NaN]) {
          await kit.rejects(
            InvalidInputError,
            `create with maxOutputBytes ${maxOutputBytes}`,
            kit.create({ maxOutputBytes }),
          );
        }
      },
    },
    {
      name: "keeps a mebibyte by default",
      async run(kit) {
        const executor = await kit.shared();
        const exact = await kit.succeedWith(executor, kit.language.fill("x", mebibyte));
        assert.equal(exact.truncated, false);
        assert.equal(exact.stdout.length, mebibyte);
        const over = await kit.succeedWith(executor, kit.language.fill("x", mebibyte + 1));
        assert.equal(over.truncated, true);
      },
    },
    {
      name: "streams what the result leaves out",
      async run(kit) {
        const executor = await kit.shared(limited);
        const program = kit.language.program(kit.language.fill("x", 100_000));
        const followed = followStream(executor.streamCodeBlocks([program]));
        const result = await kit.within("the stream", followed.result);
        assert.equal(result.truncated, true);
        assert.equal(streamedText(followed.events, "stdout"), "x".repeat(100_000));
      },
    },
    {
      name: "takes little memory for 64 MiB of output",
      async run(kit) {
        const { language } = kit;
        // It is about memory, not time: some places are slow under load.
        const executor = await kit.create({ maxOutputBytes: limit, timeoutMs: 110_000 });
        await kit.succeedWith(executor, language.print("warm"));
        using memory = new MemoryWatch();
        const result = await kit.succeedWith(executor, language.flood("written", 1024), language.print("end"));
        assert.equal(result.truncated, true);
        assert.match(result.output, /end\n$/);
        const held = memory.peak() / mebibyte;
        assert.ok(held < 24, `this process held ${held.toFixed(1)} MiB more while 64 MiB of output were cut to 4 KiB`);
      },
    },
  ],
};

async function runOver(kit: CaseContext, to: "stdout" | "stderr") {
  const { language } = kit;
  const result = await kit.succeedWith(
    await kit.shared(limited),
    language.write("<head>\n", to),
    language.fill("x", 100_000, to),
    language.write("<tail>\n", to),
  );
  assert.equal(result.truncated, true);
  assert.equal(result.blocks[0]?.truncated, true);
  return result;
}

function assertCut(text: string, total: number): void {
  assert.ok(text.startsWith("<head>\nx"), "the head is kept");
  assert.ok(text.endsWith("x<tail>\n"), "the tail is kept");
  assert.ok(text.length <= limit + 256, `${text.length} characters are kept of a limit of ${limit} bytes`);
  const named = text.slice(7, -7).replaceAll(/^x+|x+$/g, "");
  assert.match(named, /\d/, `the cut is marked with its size: ${named}`);
  const bytes = /([\d,_ ]*\d) bytes/.exec(named)?.[1];
  if (bytes !== undefined) {
    const kept = text.length - named.length;
    const missing = Number(bytes.replaceAll(/\D/g, ""));
    assert.ok(Math.abs(total - kept - missing) <= 2, `the cut says ${missing} bytes, but ${total - kept} are missing`);
  }
}
