import { expect, test } from "vitest";
import * as z from "zod";
import { type HostCallContext, hostFunctionsFrom, InvalidInputError, toFunctionName } from "../../../src/index.ts";

const context: HostCallContext = { callId: "call-1", signal: new AbortController().signal };

test("tools become functions whose names are identifiers", async () => {
  const seen: unknown[] = [];
  const [made] = hostFunctionsFrom({
    "get-weather": {
      description: "The weather.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }: { city: string }, options: unknown) => {
        seen.push(options);
        return city.length;
      },
    },
  });
  expect(made).toMatchObject({ name: "get_weather", description: "The weather.", needsApproval: false });
  expect(await made?.checkInput({ city: 1 })).toEqual({ problem: expect.stringContaining('"city"') });
  expect(await made?.execute({ city: "Oslo" }, context)).toBe(4);
  expect(seen).toEqual([{ toolCallId: "call-1", messages: [], abortSignal: context.signal }]);
});

test("schemas may come from the SDK's jsonSchema(), with or without a validator, or from a function", async () => {
  const json = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
  const validate = (value: unknown) =>
    value === "good" ? { success: true, value: "better" } : { success: false, error: new Error("not good") };
  const execute = (input: unknown) => input;
  const [plain, validated, late] = hostFunctionsFrom({
    plain: { inputSchema: { jsonSchema: json }, execute },
    validated: { inputSchema: { jsonSchema: json, validate }, execute },
    late: { inputSchema: () => ({ jsonSchema: json }), execute },
  });
  for (const each of [plain, validated, late]) expect(each?.inputSchema).toEqual(json);
  const missing = { problem: expect.stringContaining('"a"') };
  for (const each of [plain, late]) expect(await each?.checkInput({})).toEqual(missing);
  expect(await validated?.checkInput("good")).toEqual({ value: "better" });
  expect(await validated?.checkInput("bad")).toEqual({ problem: "not good" });
});

test("a JSON schema with conditions is checked", async () => {
  const jsonSchema: object = JSON.parse(
    '{ "type": "object", "if": { "required": ["a"] }, "then": { "required": ["b"] } }',
  );
  const inputSchema = { jsonSchema };
  const [made] = hostFunctionsFrom({ made: { inputSchema, execute: () => 1 } });
  expect(made?.inputSchema).toEqual(inputSchema.jsonSchema);
  expect(await made?.checkInput({ a: 1, b: 2 })).toEqual({ value: { a: 1, b: 2 } });
  expect(await made?.checkInput({ a: 1 })).toEqual({ problem: expect.stringContaining('"b"') });
  expect(await made?.checkInput("text")).toEqual({ problem: expect.any(String) });
});

test("a streamed result becomes its last value, and an MCP result its content", async () => {
  const content = [{ type: "text", text: "4 degrees" }];
  const tools = hostFunctionsFrom({
    streamed: {
      async *execute() {
        yield 1;
        yield 2;
      },
    },
    text: { execute: () => ({ content }) },
    structured: { execute: () => ({ content, structuredContent: { celsius: 4 } }) },
    picture: { execute: () => ({ content: [{ type: "image", data: "AA==" }] }) },
    failed: { execute: () => ({ content: [{ type: "text", text: "no such city" }], isError: true }) },
  });
  const [streamed, text, structured, picture, failed] = tools.map((each) => each.execute({}, context));
  expect(await streamed).toBe(2);
  expect(await text).toBe("4 degrees");
  expect(await structured).toEqual({ celsius: 4 });
  expect(await picture).toEqual({ content: [{ type: "image", data: "AA==" }] });
  await expect(failed).rejects.toThrow("no such city");
});

test("needsApproval may depend on the arguments, and gets the options of the call that the code belongs to", async () => {
  const seen: unknown[] = [];
  const execute = (_: unknown, options: unknown) => seen.push(options);
  const needsApproval = (input: unknown, options: unknown) => {
    seen.push(input, options);
    return input !== "harmless";
  };
  const approve = () => ({ approved: true });
  const callOptions = { messages: ["m"], context: 1, toolCallId: "outer" };
  const [always, byInput] = hostFunctionsFrom(
    { a: { execute, needsApproval: true }, b: { execute, needsApproval } },
    { approve, callOptions },
  );
  expect([always?.needsApproval, always?.approve, byInput?.approve]).toEqual([true, approve, approve]);
  if (typeof byInput?.needsApproval !== "function") throw new TypeError("needsApproval is not a function.");
  expect(await byInput.needsApproval("harmless", context)).toBe(false);
  expect(await byInput.needsApproval("dangerous", context)).toBe(true);
  await byInput.execute({}, context);
  const options = { messages: ["m"], context: 1, toolCallId: "call-1" };
  expect(seen).toEqual(["harmless", options, "dangerous", options, { ...options, abortSignal: context.signal }]);
});

test("names become identifiers that both languages can import", () => {
  const names = ["get-weather", "1st", "__init__", "class", "HostFunctionError", "", "read.file", "ﬁnd", "then"];
  expect(names.map(toFunctionName)).toEqual([
    "get_weather",
    "_1st",
    "_init__",
    "class_",
    "HostFunctionError_",
    "_",
    "read_file",
    "find",
    "then_",
  ]);
});

test("tools without execute, with clashing names or with a promised schema are rejected", () => {
  const execute = () => 1;
  expect(() => hostFunctionsFrom({ client_side: {} })).toThrow(/client_side has no `execute`/);
  expect(() => hostFunctionsFrom({ "a-b": { execute }, a_b: { execute } })).toThrow(/a-b and a_b would both be/);
  expect(() => hostFunctionsFrom({ late: { execute, inputSchema: Promise.resolve({}) } })).toThrow(InvalidInputError);
});

test("a schema that is nested too deeply is omitted, and lone surrogates are replaced", async () => {
  let schema: object = { type: "string" };
  for (let depth = 0; depth < 5000; depth += 1) schema = { type: "array", items: schema };
  const inputSchema = { type: "object", properties: { a: schema } };
  const [deep] = hostFunctionsFrom({ deep: { inputSchema, execute: () => 1, description: "\ud800" } });
  expect(deep).toMatchObject({ inputSchema: undefined, description: "\ufffd" });
});

test.each([
  ["a・b", "a_b"],
  ["get\u200dweather\ufe0f", "get_weather_"],
  ["wetter-größe", "wetter_größe"],
  ["\u0301a", "_\u0301a"],
  ["\u{1d4d0}\u{20000}", "A_"],
])("the tool %j becomes a function that all versions of both languages can import", (name, expected) => {
  const [made] = hostFunctionsFrom({ [name]: { execute: () => 1 } });
  expect(made?.name).toBe(expected);
});
