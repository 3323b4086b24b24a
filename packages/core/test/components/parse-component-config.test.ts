import { expect, test } from "vitest";
import * as z from "zod";
import { ComponentError, componentModelSchema, parseComponentConfig } from "../../src/index.ts";

const schema = z.strictObject({ name: z.string(), limits: z.strictObject({ turns: z.array(z.int()) }).optional() });

function issuesOf(config: Parameters<typeof parseComponentConfig>[1]): string {
  try {
    parseComponentConfig(schema, config, "@fenced/x:X");
  } catch (error) {
    if (ComponentError.isInstance(error) && error.cause instanceof z.ZodError) return error.message;
    throw error;
  }
  throw new Error("the config was accepted");
}

test("a valid config is returned with its type", () => {
  const config = parseComponentConfig(schema, { name: "a", limits: { turns: [1] } }, "@fenced/x:X");
  expect(config.limits?.turns).toEqual([1]);
});

test("all issues are listed, each with its path", () => {
  const message = issuesOf({ name: 1, limits: { turns: [1, "b", 2.5] } });
  expect(message).toContain("The config of @fenced/x:X is not valid: ");
  expect(message).toMatch(/\bname: .*string/);
  expect(message).toContain("limits.turns[1]: ");
  expect(message).toContain("limits.turns[2]: ");
});

test("a missing value is an issue that says so", () => {
  expect(issuesOf({})).toContain("name: must be a string, but is missing.");
});

test("an unknown key is an issue", () => {
  expect(issuesOf({ name: "a", nmae: "b" })).toContain('unknown "nmae". The options are name, limits.');
  expect(issuesOf({ name: "a", limits: { turns: [], more: 1 } })).toMatch(/limits: .*"more"/);
});

test("componentModelSchema accepts what dumpComponent returns, and rejects anything else", () => {
  const model = { provider: "@fenced/x:X", componentType: "agent", version: 1, config: { a: [null, { b: 1 }] } };
  expect(componentModelSchema.parse(model)).toEqual(model);
  expect(componentModelSchema.safeParse({ ...model, label: "a", description: "b" }).success).toBe(true);
  for (const wrong of [
    { version: 0 },
    { version: 1.5 },
    { config: [] },
    { config: { a: 1n } },
    { extra: 1 },
    { label: 1 },
  ]) {
    expect(componentModelSchema.safeParse({ ...model, ...wrong }).success).toBe(false);
  }
});
