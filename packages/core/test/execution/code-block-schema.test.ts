import { describe, expect, it } from "vitest";
import * as z from "zod";
import { codeBlockSchema, InvalidInputError } from "../../src/index.ts";

describe("codeBlockSchema", () => {
  it("lists the languages for a model, and accepts their aliases", () => {
    const schema = codeBlockSchema(["python", "bash"]);
    expect(z.toJSONSchema(schema, { io: "input" })).toMatchObject({
      type: "object",
      required: ["language", "code"],
      properties: { language: { type: "string", enum: ["python", "bash"], description: expect.any(String) } },
    });
    expect(schema.parse({ language: "Py", code: "1" })).toEqual({ language: "python", code: "1" });
    expect(schema.safeParse({ language: "ruby", code: "1" }).success).toBe(false);
    expect(schema.safeParse({ language: 1, code: "1" }).success).toBe(false);
  });

  it("accepts any language if none are named", () => {
    expect(codeBlockSchema().parse({ language: "ruby", code: "1" })).toEqual({ language: "ruby", code: "1" });
  });

  it("rejects an empty list of languages", () => {
    expect(() => codeBlockSchema([])).toThrow(InvalidInputError);
  });
});
