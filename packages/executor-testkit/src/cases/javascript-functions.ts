import assert from "node:assert/strict";
import { FunctionSetupError, FunctionWithRequirements } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { javascript } from "../languages/javascript.ts";
import { functionsIn } from "../needs.ts";
import type { SharedOptions } from "../shared-executors.ts";

const needs = [functionsIn("javascript")];

const doubleFunction = () =>
  FunctionWithRequirements.fromCallable(function double(number = 1) {
    return number * 2;
  });

const laterFunction = () =>
  FunctionWithRequirements.fromCallable(async function later(number: number) {
    return number + (await Promise.resolve(1));
  });

/** Created from source, because it uses names from its imports. */
const fromSource = (source: string, ...globalImports: readonly string[]) =>
  FunctionWithRequirements.fromJSON({
    language: "javascript",
    source,
    requirements: { globalImports: [...globalImports] },
  });

/** The functions that most cases offer. */
const offered: SharedOptions = () => ({
  functions: [
    doubleFunction(),
    laterFunction(),
    fromSource('function joined() { return path.posix.join("a", "b"); }', "node:path"),
  ],
});

const call = (module: string, name: string, ...parameters: readonly number[]) =>
  javascript.program(javascript.printCall?.(module, name, ...parameters) ?? "");

/** Functions that are offered to JavaScript blocks. */
export const javascriptFunctions: ConformanceGroup = {
  name: "javascript functions",
  cases: [
    {
      name: "are imported from the module `functions`",
      needs,
      async run(kit) {
        const executor = await kit.shared(offered);
        const block = call("functions", "double", 21);
        assert.equal((await kit.succeed(executor, [block, block])).output, "42\n42\n");
        assert.deepEqual(await executor.files.list(), [], "the module is not one of the user's files");
      },
    },
    {
      name: "are imported from a module of another name",
      needs,
      async run(kit) {
        const executor = await kit.create({ functions: [doubleFunction()], functionsModule: "my_tools" });
        assert.equal((await kit.succeed(executor, call("my_tools", "double", 4))).output, "8\n");
      },
    },
    {
      name: "may be async",
      needs,
      async run(kit) {
        const executor = await kit.shared(offered);
        assert.equal((await kit.succeed(executor, call("functions", "later", 1))).output, "2\n");
      },
    },
    {
      name: "see their global imports",
      needs,
      async run(kit) {
        const executor = await kit.shared(offered);
        assert.equal((await kit.succeed(executor, call("functions", "joined"))).output, "a/b\n");
      },
    },
    {
      name: "that fail to load throw FunctionSetupError with the reason",
      needs,
      async run(kit) {
        const broken = fromSource("function broken() { return 1; }", "node:fenced_testkit_no_such_module");
        const executor = await kit.create({ functions: [broken] });
        await kit.rejects(
          FunctionSetupError,
          "executeCodeBlocks",
          executor.executeCodeBlocks([call("functions", "broken")]),
          /fenced_testkit_no_such_module/,
        );
      },
    },
    {
      name: "are available after restart()",
      needs,
      async run(kit) {
        const executor = await kit.create({ functions: [doubleFunction()] });
        await kit.succeed(executor, call("functions", "double", 1));
        await kit.within("restart()", executor.restart());
        assert.equal((await kit.succeed(executor, call("functions", "double", 3))).output, "6\n");
      },
    },
  ],
};
