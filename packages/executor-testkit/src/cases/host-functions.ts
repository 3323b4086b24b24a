import assert from "node:assert/strict";
import { type ExecutionEvent, type HostFunction, hostFunction, InvalidInputError, type JsonValue } from "@fenced/core";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { hostFunctionsIn, language } from "../needs.ts";
import { followStream } from "../observe/follow-stream.ts";
import type { SharedOptions } from "../shared-executors.ts";
import { hostCallsInSessions } from "./host-calls-in-sessions.ts";
import { hostCallsUnderStress } from "./host-calls-under-stress.ts";
import { hostileHostCalls } from "./hostile-host-calls.ts";

/** Accepts any JSON, since the cases check what a function receives and returns. */
const anything = { type: "object", properties: { value: {} }, required: ["value"] } as const;

/** Returns what it is given. */
const echo = (): HostFunction =>
  hostFunction({ name: "echo", description: "Returns the value.", input: anything, execute: ({ value }) => value });

/** Throws an error with details that no program may see. */
const broken = (): HostFunction =>
  hostFunction({
    name: "broken",
    description: "Fails.",
    input: { type: "object" },
    execute: () => {
      throw new RangeError(`out of stock: ${new Error("inner").stack}\n in '/etc/of-the-host/secret.txt'`);
    },
  });

/** The functions that most cases offer. */
const offered: SharedOptions = () => ({ functions: [echo(), broken()] });

const python = (code: string) => ({ language: "python", code });
const inPython = [hostFunctionsIn("python")];

/** Statements that make a call which fails, and print why. */
const failing = (call: string) => `try:
    ${call}
except HostFunctionError as error:
    print(error)
`;

const values: JsonValue = [
  ["", "grüße 🎈", 'quote " and \\ and \n', "\u2028", "\u0000"],
  [0, -1, 1.5, 1e300, 9_007_199_254_740_991],
  [true, false, null],
  { "": {}, "not an identifier": [[[]]], __proto__x: 1 },
];

const calls: readonly ConformanceCase[] = [
  {
    name: "take and return JSON values of every kind",
    needs: inPython,
    async run(kit) {
      const executor = await kit.shared(offered);
      const code = `import json
from functions import echo
value = json.loads(${JSON.stringify(JSON.stringify(values))})
assert echo(value) == value, echo(value)
assert echo(value=None) is None
print(json.dumps(echo(value=value)))
`;
      const result = await kit.succeed(executor, python(code));
      assert.deepEqual(JSON.parse(result.output), values);
      assert.deepEqual(await executor.files.list(), [], "the module is not one of the user's files");
    },
  },
  {
    name: "are async functions that take one object in JavaScript",
    needs: [hostFunctionsIn("javascript")],
    async run(kit) {
      const executor = await kit.shared(offered);
      const code = `import { echo, HostFunctionError } from "functions";
const value = JSON.parse(${JSON.stringify(JSON.stringify(values))});
console.log(JSON.stringify(await echo({ value })));
const failed = await echo({}).catch((error) => error);
console.log(failed instanceof HostFunctionError, failed.message.includes("value"));
`;
      const result = await kit.succeed(executor, { language: "javascript", code });
      const [first = "", second] = result.output.split("\n");
      assert.deepEqual(JSON.parse(first), values);
      assert.equal(second, "true true");
      assert.deepEqual(await executor.files.list(), [], "the package is not one of the user's files");
    },
  },
  {
    name: "can be called from TypeScript",
    needs: [hostFunctionsIn("typescript")],
    async run(kit) {
      const executor = await kit.shared(offered);
      const code = `import { echo } from "functions";\nconst value: number = 42;\nvoid echo({ value }).then(console.log);\n`;
      assert.equal((await kit.succeed(executor, { language: "typescript", code })).output, "42\n");
    },
  },
  {
    name: "are a command in shells that takes and prints JSON",
    needs: [hostFunctionsIn("sh")],
    async run(kit) {
      const executor = await kit.shared(offered);
      const code = `functions echo '{"value": [1, "grüße"]}'
echo '{"value": 2}' | functions echo -
functions echo '{}' 2>error.txt || echo "failed with $?"
grep -c '"value"' error.txt
`;
      const result = await kit.succeed(executor, { language: "sh", code });
      const [list, two, ...rest] = result.output.split("\n");
      assert.deepEqual([JSON.parse(list ?? ""), JSON.parse(two ?? "")], [[1, "grüße"], 2]);
      assert.deepEqual(rest, ["failed with 1", "1", ""]);
    },
  },
  {
    name: "are in a module with another name, which is also the name of the shell command",
    needs: [...inPython, hostFunctionsIn("sh")],
    async run(kit) {
      const executor = await kit.create({ functions: [echo()], functionsModule: "my_tools" });
      const blocks = [
        python("from my_tools import echo\nprint(echo(1))\n"),
        { language: "sh", code: `my_tools echo '{"value": 2}'\n` },
      ];
      assert.equal((await kit.succeed(executor, blocks)).output, "1\n2\n");
    },
  },
  {
    name: "reject invalid arguments with an exception that names the field, and do not run",
    needs: inPython,
    async run(kit) {
      let ran = 0;
      const count = hostFunction({
        name: "count",
        description: "Counts.",
        input: { type: "object", properties: { step: { type: "integer" } }, required: ["step"] },
        execute: () => (ran += 1),
      });
      const executor = await kit.shared(offered);
      const code = `from functions import count, HostFunctionError
for arguments in ({}, {"step": "one"}, {"step": None}):
    try:
        count(**arguments)
    except HostFunctionError as error:
        print(error.name, '"step"' in str(error))
`;
      const result = await kit.succeed(executor, python(code), { functions: [count] });
      assert.equal(result.output, "ArgumentError True\n".repeat(3));
      assert.equal(ran, 0);
    },
  },
  {
    name: "that throw raise an exception with the name and the message, but no stack trace or host paths",
    needs: inPython,
    async run(kit) {
      const executor = await kit.shared(offered);
      const code = `from functions import broken, HostFunctionError
${failing("broken()")}`;
      const { output } = await kit.succeed(executor, python(code));
      assert.match(output, /^RangeError: out of stock/);
      assert.doesNotMatch(output, /secret|\bat .*:\d+|host-functions\.[jt]s/);
    },
  },
  {
    name: "that return an error raise it, and one within a result is its text",
    needs: inPython,
    async run(kit) {
      const executor = await kit.shared(offered);
      const result = hostFunction({
        name: "result",
        description: "Returns an error, alone or in a list.",
        input: { type: "object", properties: { alone: { type: "boolean" } }, required: ["alone"] },
        execute: ({ alone }) => (alone === true ? new RangeError("out of stock") : [new TypeError("no price")]),
      });
      const code = `from functions import result, HostFunctionError
${failing("result(alone=True)")}print(result(alone=False))
`;
      const { output } = await kit.succeed(executor, python(code), { functions: [result] });
      assert.equal(output, "RangeError: out of stock\n['TypeError: no price']\n");
    },
  },
  {
    name: "appear as events in the stream, each result after its call",
    needs: inPython,
    async run(kit) {
      const executor = await kit.shared(offered);
      const code = `from functions import echo, HostFunctionError
echo("first")
try:
    echo()
except HostFunctionError:
    pass
`;
      const followed = followStream(executor.streamCodeBlocks([python("print(1)"), python(code)]));
      await kit.within("the stream", followed.result);
      const events = followed.events.filter((event) => event.type.startsWith("host-"));
      assert.deepEqual(events.map(summary), [
        { type: "host-call", index: 1, input: { value: "first" } },
        { type: "host-result", index: 1, output: "first" },
        { type: "host-call", index: 1, input: {} },
        { type: "host-result", index: 1, error: "ArgumentError" },
      ]);
      const ids = events.map((event) => ("callId" in event ? event.callId : ""));
      assert.equal(ids[0], ids[1]);
      assert.notEqual(ids[1], ids[2]);
    },
  },
  {
    name: "wait for approval, which sees the arguments and gives the program its reason",
    needs: inPython,
    async run(kit) {
      const asked: JsonValue[] = [];
      const executor = await kit.create({
        functions: [echo()],
        approveHostCall: async ({ name, input, index }) => {
          asked.push({ name, input, index });
          return { approved: asked.length === 1, reason: "once is enough" };
        },
      });
      const code = `from functions import echo, HostFunctionError
print(echo("yes"))
${failing('echo("no")')}`;
      const result = await kit.succeed(executor, python(code));
      assert.equal(result.output, "yes\nNotApprovedError: The call was not approved: once is enough\n");
      const expected = ["yes", "no"].map((value) => ({ name: "echo", input: { value }, index: 0 }));
      assert.deepEqual(asked, expected);
    },
  },
  {
    name: "with their own `approve` are asked after the executor, and both see `needsApproval`",
    needs: inPython,
    async run(kit) {
      const asked: string[] = [];
      const executor = await kit.create({
        approveHostCall: ({ needsApproval }) => {
          asked.push(`executor ${needsApproval}`);
          return { approved: true };
        },
      });
      const remove = hostFunction({
        name: "remove",
        description: "Removes something.",
        input: { type: "object", properties: { id: { type: "integer" } } },
        needsApproval: ({ id }) => id !== 1,
        approve: ({ needsApproval }) => {
          asked.push(`function ${needsApproval}`);
          return { approved: !needsApproval, reason: "kept" };
        },
        execute: ({ id = null }) => id,
      });
      const code = `from functions import remove, HostFunctionError
print(remove(1))
${failing("remove(2)")}`;
      const result = await kit.succeed(executor, python(code), { functions: [remove] });
      assert.equal(result.output, "1\nNotApprovedError: The call was not approved: kept\n");
      assert.deepEqual(asked, ["executor false", "function false", "executor true", "function true"]);
    },
  },
  {
    name: "given to one call are available to that call only",
    needs: inPython,
    async run(kit) {
      const executor = await kit.shared(offered);
      const whoami = (user: string): HostFunction =>
        hostFunction({ name: "whoami", description: "The user.", input: { type: "object" }, execute: () => user });
      const code = "from functions import echo, whoami\nprint(echo('I am'), whoami())\n";
      const run = (user: string) => kit.succeed(executor, python(code), { functions: [whoami(user)] });
      const results = await Promise.all([run("Ada"), run("Grace"), run("Ada")]);
      const outputs = results.map(({ output }) => output);
      assert.deepEqual(outputs, ["I am Ada\n", "I am Grace\n", "I am Ada\n"]);
      const without = await kit.run(executor, python(code));
      assert.notEqual(without.exitCode, 0, "the next call does not have it");
    },
  },
  {
    name: "still work after restart()",
    needs: inPython,
    async run(kit) {
      const executor = await kit.create({ functions: [echo()] });
      const block = python("from functions import echo\nprint(echo(1))\n");
      await kit.succeed(executor, block);
      await kit.within("restart()", executor.restart());
      assert.equal((await kit.succeed(executor, block)).output, "1\n");
    },
  },
  {
    name: "are described to the model with their types, in each language that can call them",
    needs: [language("python"), ...inPython],
    async run(kit) {
      const executor = await kit.shared(offered);
      await kit.within("start()", executor.start());
      const text = executor.formatFunctionsForPrompt();
      assert.match(text, /def echo\(value: Any\) -> Any:\n {4}"""Returns the value\."""/);
      if (executor.capabilities.hostFunctions.includes("javascript")) {
        assert.match(text, /declare function echo\(input: \{ value: unknown \}\): Promise<unknown>;/);
      }
      const whoami = hostFunction({ name: "whoami", description: "", input: { type: "object" }, execute: () => 1 });
      const more = executor.formatFunctionsForPrompt("$functions", { functions: [whoami] });
      assert.match(more, /def echo\([^]*def whoami\(/, "the prompt describes a call's functions, too");
    },
  },
  {
    name: "that an executor cannot offer throw InvalidInputError",
    needs: [
      ({ capabilities }) =>
        capabilities.hostFunctions.length > 0 ? "capabilities.hostFunctions names languages" : undefined,
    ],
    async run(kit) {
      const block = kit.language.program(kit.language.nothing());
      const given = (await kit.create()).executeCodeBlocks([block], { functions: [echo()] });
      await kit.rejects(InvalidInputError, "a call with a host function", given, /host functions/);
      const executor = await kit.create({ functions: [echo()] });
      const called = executor.executeCodeBlocks([block]);
      await kit.rejects(InvalidInputError, "a call of an executor with one", called, /host functions/);
    },
  },
];

/** Functions of this program that blocks call from where they run. */
export const hostFunctions: ConformanceGroup = {
  name: "host functions",
  cases: [...calls, ...hostCallsUnderStress, ...hostCallsInSessions, ...hostileHostCalls],
};

function summary(event: ExecutionEvent): object {
  if (event.type === "host-call") return { type: event.type, index: event.index, input: event.input };
  if (event.type !== "host-result") return {};
  const { type, index, output, error } = event;
  return { type, index, ...(error ? { error: error.name } : { output }) };
}
