import assert from "node:assert/strict";
import { componentModelSchema, FunctionWithRequirements, type ComponentModel } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { CommonExecutorOptions } from "../common-executor-options.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { functionsIn, workDir } from "../needs.ts";

const greet = () =>
  FunctionWithRequirements.fromString(`
def greet(name="you"):
    """Greets a person."""
    return "hello " + name
`);

/** Converts settings to plain JSON and back. */
export const component: ConformanceGroup = {
  name: "component",
  cases: [
    {
      name: "is dumped as plain JSON that names its provider",
      async run(kit) {
        const model = (await kit.create()).dumpComponent();
        assert.deepEqual(throughJson(model), model, "it contains nothing that JSON cannot represent");
        assert.match(model.provider, /^(?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*:[A-Za-z_$][\w$]*$/);
        assert.equal(model.componentType, "code_executor");
        assert.ok(Number.isInteger(model.version) && model.version >= 1);
        assert.equal(
          !("workDir" in model.config) || kit.subject.takesWorkDir,
          true,
          "an executor whose config has a workDir must accept one: set takesWorkDir on the subject",
        );
      },
    },
    {
      name: "keeps its settings when loaded",
      async run(kit) {
        const loaded = await reload(kit, { timeoutMs: 1500, env: { FENCED_A: "kept" }, maxOutputBytes: 4096 });
        const { language } = kit;
        // On a busy machine, they may take longer than the time limit that the last block shows.
        const succeed = (statement: string) =>
          kit.succeed(loaded, language.program(statement), { timeoutMs: kit.patienceMs });
        assert.equal((await succeed(language.printVariable("FENCED_A"))).output, "FENCED_A=kept\n");
        assert.equal((await succeed(language.fill("x", 5000))).truncated, true);
        assert.equal((await kit.run(loaded, language.program(language.beat("main")))).timedOut, true);
      },
    },
    {
      name: "keeps its functions when loaded",
      needs: [functionsIn("python")],
      async run(kit) {
        const loaded = await reload(kit, { functions: [greet()], functionsModule: "my_tools" });
        assert.match(loaded.formatFunctionsForPrompt(), /def greet\(/);
        const code = "from my_tools import greet\nprint(greet())\n";
        assert.equal((await kit.succeed(loaded, { language: "python", code })).output, "hello you\n");
      },
    },
    {
      name: "keeps its workDir when loaded",
      needs: [workDir],
      async run(kit) {
        const directory = await kit.directory();
        const loaded = await reload(kit, { workDir: directory });
        await kit.succeedWith(loaded, kit.language.writeFile("made.txt", "made"));
        const other = await kit.create({ workDir: directory });
        assert.deepEqual(await other.files.list(), [{ path: "made.txt", size: 4 }]);
      },
    },
    {
      name: "is dumped the same before and after start()",
      async run(kit) {
        const executor = await kit.create({ timeoutMs: 12_345 });
        const before = executor.dumpComponent();
        await kit.within("start()", executor.start());
        assert.deepEqual(executor.dumpComponent(), before);
      },
    },
  ],
};

async function reload(kit: CaseContext, options: CommonExecutorOptions) {
  const model = (await kit.create(options)).dumpComponent();
  const loaded = kit.adopt(await kit.subject.load(throughJson(model)));
  assert.deepEqual(loaded.dumpComponent(), model, "a loaded component dumps the same model");
  return loaded;
}

function throughJson(model: ComponentModel): ComponentModel {
  const text = JSON.stringify(model);
  return componentModelSchema.parse(JSON.parse(text));
}
