import assert from "node:assert/strict";
import { InvalidInputError } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { processes } from "../needs.ts";

/** The order of blocks, failures, and what a result says about its blocks. */
export const blocks: ConformanceGroup = {
  name: "blocks",
  cases: [
    {
      name: "runs blocks in order",
      async run(kit) {
        const { language } = kit;
        const names = ["first", "second", "third"];
        const result = await kit.succeed(
          await kit.shared(),
          names.map((name) => language.program(language.print(name))),
        );
        assert.equal(result.output, "first\nsecond\nthird\n");
        assert.deepEqual(
          result.blocks.map((block) => block.output),
          ["first\n", "second\n", "third\n"],
        );
      },
    },
    {
      name: "stops at the first block that fails",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const result = await kit.run(executor, [
          language.program(language.print("before")),
          language.program(language.print("here"), language.fail("deliberate")),
          language.program(language.writeFile("after.txt", "ran")),
        ]);
        assert.notEqual(result.exitCode, 0);
        assert.equal(result.blocks.length, 2, "one result for each block that ran");
        assert.equal(result.exitCode, result.blocks[1]?.exitCode, "the exit code is that of the block that failed");
        assert.equal(result.stdout, "before\nhere\n", "output before the failure is kept");
        assert.match(result.output, /deliberate/, "a failure says why");
        assert.equal(result.timedOut, false);
        assert.deepEqual(await executor.files.list(), [], "later blocks do not run");
      },
    },
    {
      name: "returns the program's exit code",
      needs: [processes],
      async run(kit) {
        const executor = await kit.shared();
        for (const code of [0, 1, 7, 255]) {
          const result = await kit.run(executor, kit.language.program(kit.language.exit(code)));
          assert.equal(result.exitCode, code);
          assert.equal(result.blocks[0]?.exitCode, code);
        }
      },
    },
    {
      name: "runs blocks after one that failed in an earlier call",
      async run(kit) {
        const executor = await kit.shared();
        await kit.run(executor, kit.language.program(kit.language.fail("deliberate")));
        const result = await kit.succeedWith(executor, kit.language.print("again"));
        assert.equal(result.output, "again\n");
      },
    },
    {
      name: "throws InvalidInputError when there are no blocks",
      async run(kit) {
        const executor = await kit.shared();
        await kit.rejects(InvalidInputError, "executeCodeBlocks([])", executor.executeCodeBlocks([]));
        const events = executor.streamCodeBlocks([])[Symbol.asyncIterator]();
        await kit.rejects(InvalidInputError, "streamCodeBlocks([])", events.next());
      },
    },
    {
      name: "returns complete and consistent results",
      async run(kit) {
        const { language } = kit;
        const result = await kit.run(await kit.shared(), [
          language.program(language.print("one"), language.sleep(100)),
          language.program(language.write("two\n", "stderr"), language.fail("three")),
        ]);
        for (const field of ["output", "stdout", "stderr"] as const) {
          const joined = result.blocks.map((block) => block[field]).join("");
          assert.equal(result[field], joined, `${field} joins that of all blocks`);
        }
        assert.deepEqual(result.displays, []);
        assert.equal(result.truncated, false);
        assert.equal(result.timedOut, false);
        assert.equal(result.stateLost, false);
        for (const block of result.blocks) {
          assert.ok(Number.isInteger(block.exitCode));
          assert.ok(Number.isFinite(block.durationMs) && block.durationMs >= 0);
          assert.equal(block.timedOut, false);
          assert.equal(block.truncated, false);
        }
        const total = result.blocks.reduce((sum, block) => sum + block.durationMs, 0);
        // Allow a millisecond for each block, since clocks may round.
        assert.ok(result.durationMs >= total - result.blocks.length, "durationMs covers all blocks");
        assert.ok(total >= 90, "durations are in milliseconds");
      },
    },
    {
      name: "does not modify the caller's blocks and options",
      async run(kit) {
        const block = Object.freeze(kit.language.program(kit.language.print("frozen")));
        const options = Object.freeze({ env: Object.freeze({ A: "1" }), timeoutMs: 30_000 });
        const result = await kit.succeed(await kit.shared(), Object.freeze([block]), options);
        assert.equal(result.output, "frozen\n");
      },
    },
  ],
};
