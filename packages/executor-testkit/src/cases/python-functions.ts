import assert from "node:assert/strict";
import { Alias, FunctionSetupError, FunctionWithRequirements, ImportFromModule, withRequirements } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { python } from "../languages/python.ts";
import { functionsIn, stateful } from "../needs.ts";
import { withDoubledTime } from "../observe/until-running.ts";
import type { SharedOptions } from "../shared-executors.ts";

const needs = [functionsIn("python")];

const double = () =>
  FunctionWithRequirements.fromString(`
def double(number: int = 1) -> int:
    """Twice the number."""
    return number * 2
`);

const later = () =>
  FunctionWithRequirements.fromString(`
async def later(number):
    return number + 1
`);

const cached = () =>
  withRequirements({ globalImports: ["functools"] })(`
@functools.lru_cache(maxsize=None)
def cached(number):
    """Once."""
    return number * 3
`);

const allImports = () => {
  const paths = new ImportFromModule("pathlib", ["Path", new Alias("PurePath", "P")]);
  return withRequirements({ globalImports: ["math", new Alias("json", "j"), paths] })(`
def all_imports():
    return j.dumps([math.floor(2.5), Path("a", "b").name, P("c").name])
`);
};

const odd = () =>
  FunctionWithRequirements.fromString(String.raw`
def odd():
    r'''Doc with "quotes" and \backslash.'''
    return "tab\t'quote' \"double\" \\ grüße 🎈 {} %s $HOME"
`);

/** The functions that most cases offer. */
const offered: SharedOptions = () => ({ functions: [double(), later(), cached(), allImports(), odd()] });

const callDouble = python.program(python.printCall?.("functions", "double", 21) ?? "");

const broken = () =>
  withRequirements({ globalImports: ["fenced_testkit_no_such_module"] })(`
def broken():
    return fenced_testkit_no_such_module.value
`);

const unobtainable = () =>
  withRequirements({ pythonPackages: ["fenced-testkit-no-such-package==1.2.3"] })(`
def unobtainable():
    return 1
`);

// Evaluated along with the definition, which shows when the module is loaded.
const recording = () =>
  withRequirements({ globalImports: ["os"] })(`
def recording(path=os.path.abspath("loads.txt"), loads=open("loads.txt", "a").write(".")):
    return path
`);

/** Functions that are offered to Python blocks. */
export const pythonFunctions: ConformanceGroup = {
  name: "python functions",
  cases: [
    {
      name: "are imported from the module `functions`",
      needs,
      async run(kit) {
        const executor = await kit.shared(offered);
        const result = await kit.succeed(executor, [callDouble, callDouble]);
        assert.equal(result.output, "42\n42\n");
        assert.deepEqual(await executor.files.list(), [], "the module is not one of the user's files");
      },
    },
    {
      name: "are imported from a module of another name",
      needs,
      async run(kit) {
        const executor = await kit.create({ functions: [double()], functionsModule: "my_tools" });
        const result = await kit.succeed(executor, python.program(python.printCall?.("my_tools", "double", 4) ?? ""));
        assert.equal(result.output, "8\n");
      },
    },
    {
      name: "are not replaced by a module that earlier code left in the workspace",
      needs,
      async run(kit) {
        const executor = await kit.create({ functions: [double()], functionsModule: "my_tools" });
        await executor.files.write("my_tools.py", "def double(number): return 'forged'");
        const block = python.program(python.printCall?.("my_tools", "double", 4) ?? "");
        await kit.rejects(FunctionSetupError, "my_tools.py", executor.executeCodeBlocks([block]));
        await executor.files.remove("my_tools.py");
        assert.equal((await kit.succeed(executor, block)).output, "8\n");
      },
    },
    {
      name: "may be async and decorated",
      needs,
      async run(kit) {
        const executor = await kit.shared(offered);
        // Drives the coroutine by hand, because the session may already have a running event loop.
        const code = `from functions import later, cached
try:
    later(1).send(None)
except StopIteration as end:
    print(end.value, cached(2), cached.cache_info().misses)
`;
        const result = await kit.succeed(executor, { language: "python", code });
        assert.equal(result.output, "2 6 1\n");
      },
    },
    {
      name: "see their global imports",
      needs,
      async run(kit) {
        const executor = await kit.shared(offered);
        const result = await kit.succeed(
          executor,
          python.program(python.printCall?.("functions", "all_imports") ?? ""),
        );
        assert.equal(result.output, '[2, "b", "c"]\n');
      },
    },
    {
      name: "keep their source character for character",
      needs,
      async run(kit) {
        const executor = await kit.shared(offered);
        const result = await kit.succeed(executor, python.program(python.printCall?.("functions", "odd") ?? ""));
        assert.equal(result.output, "tab\t'quote' \"double\" \\ grüße 🎈 {} %s $HOME\n");
      },
    },
    {
      name: "that fail to load throw FunctionSetupError with the reason on every call",
      needs,
      async run(kit) {
        const executor = await kit.create({ functions: [double(), broken()] });
        for (let attempt = 0; attempt < 2; attempt++) {
          await kit.rejects(
            FunctionSetupError,
            "executeCodeBlocks",
            executor.executeCodeBlocks([callDouble]),
            /fenced_testkit_no_such_module/,
          );
        }
        await kit.within("stop()", executor.stop());
      },
    },
    {
      name: "with a syntax error throw FunctionSetupError with Python's message",
      needs,
      async run(kit) {
        const mistaken = FunctionWithRequirements.fromString("def mistaken():\n    x = = 1\n");
        const executor = await kit.create({ functions: [double(), mistaken] });
        await kit.rejects(
          FunctionSetupError,
          "executeCodeBlocks",
          executor.executeCodeBlocks([callDouble]),
          /SyntaxError/,
        );
      },
    },
    {
      name: "whose package cannot be installed throw FunctionSetupError that names it",
      needs,
      async run(kit) {
        // If no index can be reached, installers try for a minute before they give up.
        const env = { PIP_NO_INDEX: "1", UV_NO_INDEX: "1" };
        const executor = await kit.create({ functions: [unobtainable()], env });
        await kit.rejects(
          FunctionSetupError,
          "executeCodeBlocks",
          executor.executeCodeBlocks([callDouble]),
          /fenced-testkit-no-such-package/,
        );
      },
    },
    {
      name: "are set up once per session, and again after restart()",
      needs: [...needs, stateful],
      async run(kit) {
        const executor = await kit.create({ functions: [recording()] });
        const loads = async () => (await executor.files.read("loads.txt")).length;
        const use = python.program(python.printCall?.("functions", "recording") ?? "");
        await kit.succeed(executor, use);
        const first = await loads();
        await kit.succeed(executor, [use, use]);
        assert.equal(await loads(), first, "not again in the same session");
        await kit.within("restart()", executor.restart());
        await kit.succeed(executor, use);
        assert.ok((await loads()) > first, "again in the next session");
      },
    },
    {
      name: "are available after restart(), and after stop() and start()",
      needs,
      async run(kit) {
        const executor = await kit.create({ functions: [double()] });
        assert.equal((await kit.succeed(executor, callDouble)).output, "42\n");
        await kit.within("restart()", executor.restart());
        assert.equal((await kit.succeed(executor, callDouble)).output, "42\n");
        await kit.within("stop()", executor.stop());
        await kit.within("start()", executor.start());
        assert.equal((await kit.succeed(executor, callDouble)).output, "42\n");
      },
    },
    {
      name: "are available to simultaneous first calls",
      needs,
      async run(kit) {
        const executor = await kit.create({ functions: [double()] });
        const results = await Promise.all([1, 2, 3, 4].map(() => kit.succeed(executor, callDouble)));
        assert.ok(results.every(({ output }) => output === "42\n"));
      },
    },
    {
      name: "take set-up time that does not count towards the blocks' timeout",
      needs,
      async run(kit) {
        // The block must begin and end in less time than the set-up takes.
        const { result } = await withDoubledTime(kit, 2500, async (timeoutMs) => {
          const slow = withRequirements({ globalImports: ["time"] })(`
def slow(_=time.sleep(${(timeoutMs + 500) / 1000})):
    return 1
`);
          const executor = await kit.create({ functions: [slow], timeoutMs });
          const ended = await kit.run(executor, python.program(python.print("no import, no waiting")));
          return { wasEnough: !ended.timedOut, result: ended };
        });
        assert.deepEqual([result.exitCode, result.output], [0, "no import, no waiting\n"]);
      },
    },
  ],
};
