import assert from "node:assert/strict";
import { InvalidInputError } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { processes, statement, stdin as stdinGiven } from "../needs.ts";

/** Standard input: closed unless given. */
export const stdin: ConformanceGroup = {
  name: "standard input",
  cases: [
    {
      name: "is closed by default: a program that reads a line fails instead of hanging",
      async run(kit) {
        const result = await kit.run(await kit.shared(), kit.language.program(kit.language.printLineRead()));
        assert.notEqual(result.exitCode, 0);
        assert.equal(result.timedOut, false);
      },
    },
    {
      name: "is empty by default for a program that reads all of it",
      needs: [processes, statement("printInputLength")],
      async run(kit) {
        const result = await kit.succeedWith(await kit.shared(), kit.language.printInputLength?.() ?? "");
        assert.equal(result.output, "length:0\n");
      },
    },
    {
      name: "throws InvalidInputError if the executor does not support it",
      needs: [({ capabilities }) => (capabilities.stdin ? "capabilities.stdin is true" : undefined)],
      async run(kit) {
        const executor = await kit.shared();
        const block = kit.language.program(kit.language.nothing());
        const called = executor.executeCodeBlocks([block], { stdin: "for nobody" });
        await kit.rejects(InvalidInputError, "a call with stdin", called);
      },
    },
    {
      name: "passes the call's text to the program",
      needs: [stdinGiven],
      async run(kit) {
        const program = kit.language.program(kit.language.printLineRead());
        const result = await kit.succeed(await kit.shared(), program, { stdin: "grüße 🎈\nnext\n" });
        assert.match(result.stdout, /read:grüße 🎈\n$/);
      },
    },
    {
      name: "is passed to each block of a call, but not to the next call",
      needs: [stdinGiven],
      async run(kit) {
        const program = kit.language.program(kit.language.printLineRead());
        const executor = await kit.shared();
        const both = await kit.succeed(executor, [program, program], { stdin: "again\n" });
        assert.equal(both.stdout.match(/read:again\n/g)?.length, 2);
        const closed = await kit.run(executor, program);
        assert.notEqual(closed.exitCode, 0);
      },
    },
    {
      name: "ends after the given text, even without a newline",
      needs: [stdinGiven, processes, statement("printInputLength")],
      async run(kit) {
        const program = kit.language.program(kit.language.printInputLength?.() ?? "");
        const executor = await kit.shared();
        assert.equal((await kit.succeed(executor, program, { stdin: "12345" })).output, "length:5\n");
        assert.equal((await kit.succeed(executor, program, { stdin: "" })).output, "length:0\n");
      },
    },
    {
      name: "may be large",
      needs: [stdinGiven, processes, statement("printInputLength")],
      async run(kit) {
        const program = kit.language.program(kit.language.printInputLength?.() ?? "");
        const result = await kit.succeed(await kit.shared(), program, { stdin: "x".repeat(5_000_000) });
        assert.equal(result.output, "length:5000000\n");
      },
    },
    {
      name: "may be left unread",
      needs: [stdinGiven],
      async run(kit) {
        const program = kit.language.program(kit.language.print("did not listen"));
        const result = await kit.succeed(await kit.shared(), program, { stdin: "x".repeat(5_000_000) });
        assert.equal(result.output, "did not listen\n");
      },
    },
  ],
};
