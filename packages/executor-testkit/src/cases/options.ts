import assert from "node:assert/strict";
import { InvalidInputError } from "@fenced/core";
import type { CommonExecutorOptions } from "../common-executor-options.ts";
import type { ConformanceGroup } from "../conformance-case.ts";

/** What JavaScript callers may pass, since no compiler checks it. */
export const options: ConformanceGroup = {
  name: "options",
  cases: [
    {
      name: "that are unknown throw an InvalidInputError that names them",
      async run(kit) {
        for (const name of ["timeout", "timeout_ms", "nework", "__proto__"]) {
          const given: CommonExecutorOptions = { timeoutMs: 1000, ...unknownOption(name) };
          const made = (async () => kit.create(given))();
          await kit.rejects(InvalidInputError, `create with ${name}`, made, new RegExp(`"${name}"`));
        }
      },
    },
    {
      name: "of the wrong type throw an InvalidInputError that names them",
      async run(kit) {
        for (const [name, value] of [
          ["timeoutMs", "1000"],
          ["timeoutMs", null],
          ["maxOutputBytes", 1.5],
          ["env", { A: 1 }],
          ["env", ["A=1"]],
          ["functions", [() => 1]],
        ] as const) {
          const given: CommonExecutorOptions = Object.assign({ timeoutMs: 1000 }, { [name]: value });
          const made = (async () => kit.create(given))();
          await kit.rejects(InvalidInputError, `create with ${name} ${JSON.stringify(value)}`, made, new RegExp(name));
        }
      },
    },
    {
      name: "that are undefined count as not given",
      async run(kit) {
        const given: CommonExecutorOptions = { maxOutputBytes: 1000 };
        for (const name of ["timeoutMs", "env"]) {
          Object.defineProperty(given, name, { value: undefined, enumerable: true });
        }
        const plain = await kit.create({ maxOutputBytes: 1000 });
        assert.deepEqual((await kit.create(given)).dumpComponent(), plain.dumpComponent());
      },
    },
    {
      name: "and arguments of a call are checked before anything runs",
      async run(kit) {
        const executor = await kit.shared();
        const untyped: UntypedExecutor = executor;
        const { language } = kit;
        const blocks = [language.program(language.writeFile("ran.txt", "ran"))];
        for (const call of [
          ["print(1)"],
          [undefined],
          [["print(1)"]],
          [[{ language: "python" }]],
          [blocks, { timeout: 60 }],
          [blocks, { timeoutMs: "60" }],
          [blocks, { signal: "abort" }],
          [blocks, { env: { A: 1 } }],
          [blocks, 5000],
        ]) {
          const what = JSON.stringify(call);
          await kit.rejects(InvalidInputError, `executeCodeBlocks(${what})`, untyped.executeCodeBlocks(...call));
          await kit.rejects(InvalidInputError, `streamCodeBlocks(${what})`, firstOf(untyped.streamCodeBlocks(...call)));
        }
        assert.deepEqual(await executor.files.list(), [], "nothing ran");
      },
    },
    {
      name: "and arguments of file calls are checked before any file changes",
      async run(kit) {
        const executor = await kit.shared();
        const files: UntypedFiles = executor.files;
        await executor.files.write("kept.txt", "kept");
        for (const [method, ...call] of [
          ["list", 5],
          ["read"],
          ["read", 5],
          ["write", "kept.txt"],
          ["write", "kept.txt", { text: "lost" }],
          ["write", 5, "lost"],
          ["remove"],
          ["remove", ["kept.txt"]],
          ["upload"],
          ["upload", "kept.txt"],
          ["download", "kept.txt", await kit.directory()],
          ["download", ["kept.txt"]],
        ] as const) {
          const what = `files.${method}(${JSON.stringify(call)})`;
          await kit.rejects(InvalidInputError, what, files[method](...call));
        }
        assert.deepEqual(await kit.paths(executor), ["kept.txt"]);
        assert.equal(Buffer.from(await executor.files.read("kept.txt")).toString(), "kept");
      },
    },
  ],
};

/** An object with an own property of that name, even if the name has a special meaning in object literals. */
function unknownOption(name: string): object {
  return Object.defineProperty({}, name, { value: "none", enumerable: true });
}

async function firstOf(events: AsyncIterable<unknown>): Promise<unknown> {
  return events[Symbol.asyncIterator]().next();
}

/** An executor as JavaScript sees it. */
interface UntypedExecutor {
  executeCodeBlocks(...parameters: readonly unknown[]): Promise<unknown>;
  streamCodeBlocks(...parameters: readonly unknown[]): AsyncIterable<unknown>;
}

/** Files as JavaScript sees them. */
interface UntypedFiles {
  list(...parameters: readonly unknown[]): Promise<unknown>;
  read(...parameters: readonly unknown[]): Promise<unknown>;
  write(...parameters: readonly unknown[]): Promise<unknown>;
  remove(...parameters: readonly unknown[]): Promise<unknown>;
  upload(...parameters: readonly unknown[]): Promise<unknown>;
  download(...parameters: readonly unknown[]): Promise<unknown>;
}
