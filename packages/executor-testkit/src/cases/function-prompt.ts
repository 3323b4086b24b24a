import assert from "node:assert/strict";
import { FunctionWithRequirements, InvalidInputError } from "@fenced/core";
import type { ConformanceGroup, Need } from "../conformance-case.ts";

const someFunctions: Need = ({ capabilities }) =>
  capabilities.functions.length > 0 ? undefined : "capabilities.functions is empty";

const greet = () =>
  FunctionWithRequirements.fromString(`
def greet(name: str, *, loud: bool = False) -> "str":
    """Greets a person."""
    secret_body = name.upper() if loud else name
    return "hello " + secret_body
`);

const add = () =>
  FunctionWithRequirements.fromString(`
async def add(a: int, b: int = 1):
    return a + b
`);

/** What the prompt tells a model about the functions. */
export const functionPrompt: ConformanceGroup = {
  name: "function prompt",
  cases: [
    {
      name: "is empty when there are no functions",
      async run(kit) {
        assert.equal((await kit.create()).formatFunctionsForPrompt(), "");
      },
    },
    {
      name: "shows the module, signatures and docstrings, and no bodies",
      needs: [someFunctions],
      async run(kit) {
        const prompt = (
          await kit.create({ functions: [greet(), add()], functionsModule: "my_tools" })
        ).formatFunctionsForPrompt();
        assert.ok(prompt.includes('def greet(name: str, *, loud: bool = False) -> "str":'), prompt);
        assert.ok(prompt.includes("async def add(a: int, b: int = 1):"), prompt);
        assert.ok(prompt.includes("Greets a person."), prompt);
        assert.ok(prompt.includes("my_tools"), prompt);
        assert.doesNotMatch(prompt, /secret_body|\$functions|\$module_name/);
      },
    },
    {
      name: "fills in the placeholders of a template and leaves the rest unchanged",
      needs: [someFunctions],
      async run(kit) {
        const executor = await kit.create({ functions: [greet()] });
        const prompt = executor.formatFunctionsForPrompt(
          "Module $module_name, twice $module_name: <$functions> costs $5 {x} $& $1",
        );
        assert.match(prompt, /^Module functions, twice functions: <[^]*def greet\([^]*> costs \$5 \{x\} \$& \$1$/);
      },
    },
    {
      name: "is the same before and after start()",
      needs: [someFunctions],
      async run(kit) {
        const executor = await kit.create({ functions: [greet()] });
        const before = executor.formatFunctionsForPrompt();
        await kit.within("start()", executor.start());
        assert.equal(executor.formatFunctionsForPrompt(), before);
      },
    },
    {
      name: "throws InvalidInputError for a module name that is not an identifier",
      needs: [someFunctions],
      async run(kit) {
        for (const functionsModule of ["not a name", "1st", "a-b", "a.b", "", "../up", "class"]) {
          const made = kit.create({ functionsModule });
          await kit.rejects(InvalidInputError, '"functionsModule"', made);
        }
      },
    },
    {
      name: "throws InvalidInputError for two functions of the same name",
      needs: [someFunctions],
      async run(kit) {
        await kit.rejects(InvalidInputError, "create", kit.create({ functions: [greet(), greet()] }));
      },
    },
  ],
};
