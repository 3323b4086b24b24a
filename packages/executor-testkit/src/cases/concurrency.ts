import assert from "node:assert/strict";
import type { CodeResult } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { processes, stateful } from "../needs.ts";

const calls = Array.from({ length: 20 }, (_, index) => `call ${index}`);

/** Calls that overlap. */
export const concurrency: ConformanceGroup = {
  name: "concurrency",
  cases: [
    {
      name: "never mixes the output of 20 simultaneous calls",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const results = await Promise.all(
          calls.map((name) => {
            const lines = Array.from({ length: 20 }, (_, line) => language.print(`${name} line ${line}`));
            return kit.succeedWith(executor, ...lines, language.write(`${name}\n`, "stderr"));
          }),
        );
        for (const [index, { stdout, stderr }] of results.entries()) {
          const name = calls[index] ?? "";
          assert.equal(stdout, Array.from({ length: 20 }, (_, line) => `${name} line ${line}\n`).join(""));
          assert.equal(stderr, `${name}\n`);
        }
      },
    },
    {
      name: "runs calls side by side",
      needs: [processes],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        // Each one waits for the other, so they would never end if they ran one after another.
        const meet = (mine: string, theirs: string) =>
          kit.succeedWith(executor, language.writeFile(mine, ""), language.awaitFile(theirs), language.print("met"));
        const results = await Promise.all([meet("a", "b"), meet("b", "a")]);
        assert.deepEqual(outputsOf(results), ["met\n", "met\n"]);
      },
    },
    {
      name: "runs calls one after another, first come first served",
      needs: [stateful],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const ended: string[] = [];
        const results = await Promise.all(
          calls.map(async (name) => {
            const blocks = [language.program(language.print(name)), language.program(language.sleep(20))];
            const result = await kit.succeed(executor, blocks);
            ended.push(name);
            return result;
          }),
        );
        assert.deepEqual(ended, calls);
        const expected = calls.map((name) => `${name}\n`);
        assert.deepEqual(outputsOf(results), expected);
      },
    },
    {
      name: "keeps the blocks of one call together",
      needs: [stateful],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const results = await Promise.all(
          ["one", "two", "three"].map((value) =>
            kit.succeed(executor, [
              language.program(language.assign("shared", value)),
              language.program(language.sleep(200)),
              language.program(language.printAssigned("shared")),
            ]),
          ),
        );
        assert.deepEqual(outputsOf(results), ["one\n", "two\n", "three\n"]);
      },
    },
    {
      name: "runs the other calls when some of them fail",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const results = await Promise.all([
          kit.run(executor, language.program(language.print("one"))),
          kit.run(executor, language.program(language.fail("deliberate"))),
          kit.run(executor, { language: "klingon", code: "" }),
          kit.run(executor, language.program(language.print("four"))),
        ]);
        assert.deepEqual(
          results.map(({ exitCode }) => exitCode === 0),
          [true, false, false, true],
        );
      },
    },
  ],
};

function outputsOf(results: readonly CodeResult[]): string[] {
  return results.map(({ output }) => output);
}
