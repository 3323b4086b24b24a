import { describe, expect, test } from "vitest";
import * as z from "zod";
import * as z3 from "zod/v3";
import { type HostCallContext, hostFunction, InvalidInputError, isHostFunction } from "../../../src/index.ts";

const context: HostCallContext = { callId: "1", signal: new AbortController().signal };

const weather = hostFunction({
  name: "get_weather",
  description: "The weather.",
  input: z.object({ city: z.string(), days: z.int().default(1) }),
  output: z.object({ celsius: z.number() }),
  execute: ({ city, days }) => ({ celsius: city.length * days, internal: "not for the program" }),
});

describe("a host function", () => {
  test("returns its schemas as JSON Schema", () => {
    expect(isHostFunction(weather)).toBe(true);
    expect(weather.inputSchema).toMatchObject({ properties: { city: { type: "string" } }, required: ["city"] });
    expect(weather.outputSchema).toMatchObject({ properties: { celsius: { type: "number" } } });
  });

  test("checks arguments, fills in defaults, and strips fields outside its output schema", async () => {
    const checked = await weather.checkInput({ city: "Oslo" });
    expect(checked).toEqual({ value: { city: "Oslo", days: 1 } });
    await expect(weather.execute("value" in checked ? checked.value : undefined, context)).resolves.toEqual({
      celsius: 4,
    });
  });

  test("names each invalid field", async () => {
    const checked = await weather.checkInput({ city: 7, days: "two" });
    expect(checked).toEqual({ problem: expect.stringMatching(/"city": .*; "days": /) });
  });

  test("throws if it returns a value that its output schema does not allow", async () => {
    const wrong = hostFunction({
      name: "wrong",
      description: "",
      input: { type: "object" },
      output: { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
      execute: () => ({ a: 1 }),
    });
    await expect(wrong.execute({}, context)).rejects.toThrow(
      /wrong returned a value that its `output` schema does not allow: "a"/,
    );
  });

  test("accepts a schema of any Standard Schema library", async () => {
    const input = {
      "~standard": {
        version: 1 as const,
        vendor: "own",
        validate: (value: unknown) =>
          typeof value === "object" && value !== null && "n" in value
            ? { value: { n: Number(value.n) } }
            : { issues: [{ message: "is missing", path: [{ key: "n" }] }] },
      },
    };
    const own = hostFunction({ name: "own", description: "", input, execute: ({ n }: { n: number }) => n + 1 });
    expect(own.inputSchema).toBeUndefined();
    expect(await own.checkInput({ n: "2" })).toEqual({ value: { n: 2 } });
    expect(await own.checkInput({})).toEqual({ problem: '"n": is missing' });
  });

  test("accepts a JSON schema with $defs or definitions", async () => {
    for (const key of ["$defs", "definitions"]) {
      const input = {
        type: "object",
        properties: { list: { $ref: `#/${key}/list` } },
        [key]: { list: { type: "array", items: { type: "integer" } } },
      };
      const made = hostFunction({ name: "made", description: "", input, execute: () => 1 });
      expect(await made.checkInput({ list: [1] })).toEqual({ value: { list: [1] } });
      expect(await made.checkInput({ list: ["x"] })).toEqual({ problem: expect.stringContaining('"list[0]"') });
    }
  });

  test.each([
    "get-weather",
    "class",
    "1st",
    "",
    "await",
    "__init__",
    "HostFunctionError",
    "a・b",
    "a\u200db",
    "a\ufe0f",
    "a\u{1e950}",
  ])("cannot be named %j", (name) => {
    const make = () => hostFunction({ name, description: "", input: { type: "object" }, execute: () => 1 });
    expect(make).toThrow(InvalidInputError);
    expect(make).toThrow(/"name"/);
  });

  test("accepts only a schema of an object whose keywords can all be checked", () => {
    const make = (input: object) => () =>
      hostFunction({ name: "made", description: "", input: { ...input }, execute: () => 1 });
    expect(make({ type: "string" })).toThrow(/the input schema of made has the type "string"/);
    expect(make({ type: "object", if: 1, else: {} })).toThrow(/The JSON schema of made's arguments cannot be checked/);
  });

  test("rejects unknown options", () => {
    const definition = { name: "a", description: "", input: { type: "object" }, execute: () => 1, timeout: 5 };
    expect(() => hostFunction(definition)).toThrow(/unknown option "timeout"/);
  });
});

test("a schema of zod 3 is described to the model, and validates", async () => {
  const input = z3.object({
    path: z3.string().min(1).describe("where"),
    lines: z3.number().int().optional(),
    mode: z3.enum(["r", "w"]).default("r"),
    tags: z3.array(z3.union([z3.string(), z3.null()])),
    more: z3.record(z3.boolean()).nullable(),
  });
  const read = hostFunction({ name: "read", description: "", input, execute: ({ path }) => path });
  expect(read.inputSchema).toEqual({
    type: "object",
    properties: {
      path: { type: "string", minLength: 1, description: "where" },
      lines: { type: "integer" },
      mode: { type: "string", enum: ["r", "w"], default: "r" },
      tags: { type: "array", items: { anyOf: [{ type: "string" }, { type: "null" }] } },
      more: { anyOf: [{ type: "object", additionalProperties: { type: "boolean" } }, { type: "null" }] },
    },
    required: ["path", "tags", "more"],
    additionalProperties: false,
  });
  expect(await read.checkInput({ path: "a", tags: [null], more: null })).toMatchObject({ value: { mode: "r" } });
  expect(await read.checkInput({ path: "" })).toEqual({ problem: expect.stringContaining('"path"') });
});
