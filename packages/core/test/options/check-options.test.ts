import { inspect } from "node:util";
import { InvalidInputError } from "@fenced/core";
import {
  callbackOption,
  checkExecuteArguments,
  checkOptions,
  environmentOption,
  optionsSchema,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import { describe, expect, it } from "vitest";
import * as z from "zod";

interface PlaceOptions {
  readonly network?: "none" | "open";
  readonly timeoutMs?: number;
  readonly workDir?: string;
  readonly memoryBytes?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly docker?: string | { readonly host: string; readonly certPath?: string };
  readonly onPull?: () => void;
}

const schema: z.ZodType<PlaceOptions> = optionsSchema({
  network: z.enum(["none", "open"]).exactOptional(),
  timeoutMs: timeLimitOption.exactOptional(),
  workDir: z.string().exactOptional(),
  memoryBytes: wholeNumberOption({ from: 1, unit: "bytes" }).exactOptional(),
  env: environmentOption.exactOptional(),
  docker: z
    .union([z.string(), optionsSchema({ host: z.string(), certPath: z.string().exactOptional() })])
    .exactOptional(),
  onPull: callbackOption<() => void>().exactOptional(),
} satisfies OptionSchemas<PlaceOptions>);

function refusal(options: unknown): string {
  try {
    checkOptions(schema, options, "Place");
  } catch (error) {
    if (InvalidInputError.isInstance(error)) return error.message;
    throw error;
  }
  return "accepted";
}

describe("checkOptions", () => {
  it("names the wrong option in the error, without the place inside it", () => {
    expect(() => checkOptions(schema, { docker: { host: 1 } }, "Place")).toThrow(
      expect.objectContaining({ option: "docker" }),
    );
    expect(() => checkOptions(schema, null, "Place")).toThrow(
      expect.not.objectContaining({ option: expect.anything() }),
    );
  });

  it.each([
    [{ nework: "none" }, 'Place: unknown option "nework". Did you mean "network"?'],
    [{ timeout: 60 }, 'Place: unknown option "timeout". Did you mean "timeoutMs", in milliseconds?'],
    [{ timeoutSeconds: 60 }, 'Place: unknown option "timeoutSeconds". Did you mean "timeoutMs", in milliseconds?'],
    [{ work_dir: "x" }, 'Place: unknown option "work_dir". Did you mean "workDir"?'],
    [{ memory: 1 }, 'Place: unknown option "memory". Did you mean "memoryBytes", in bytes?'],
    [
      { privileged: true },
      'Place: unknown option "privileged". The options are network, timeoutMs, workDir, memoryBytes, env, docker, onPull.',
    ],
    [
      { nework: "none", envs: {} },
      'Place: unknown options "nework", "envs". Did you mean "network"? Did you mean "env"?',
    ],
    [{ docker: { host: "x", cert: "y" } }, 'Place: unknown option "docker.cert". The options are host, certPath.'],
    [{ docker: { host: "x", one: 1, two: 2 } }, /"docker.two". The options are host, certPath\.(?! The options)/],
    [JSON.parse('{"__proto__": {"network": "none"}}'), /^Place: unknown option "__proto__"\./],
  ])("rejects unknown options with the nearest known one: %j", (options, message) => {
    expect(refusal(options)).toMatch(message);
  });

  it.each([
    [{ network: "" }, 'Place: "network" is empty. It must be "none" or "open".'],
    [{ network: null }, 'Place: "network" is null. It must be "none" or "open".'],
    [{ network: "opne" }, 'Place: "network" is "opne". It must be "none" or "open".'],
    [{ timeoutMs: "60" }, 'Place: "timeoutMs" is not valid. It must be a positive number of milliseconds'],
    [{ timeoutMs: -1 }, 'Place: "timeoutMs" is -1. It must be a positive number of milliseconds'],
    [{ memoryBytes: 1.5 }, 'Place: "memoryBytes" is 1.5. It must be a whole number of bytes, at least 1.'],
    [{ workDir: 5 }, 'Place: "workDir" is 5. It must be a string.'],
    [{ env: { A: 1 } }, 'Place: "env.A" is 1. It must be a string.'],
    [{ env: ["A=1"] }, 'Place: "env" is an array. It must be an object.'],
    [{ env: { "A=B": "" } }, 'Place: "env.A=B" is empty. It must have a name without `=`'],
    [{ docker: 5 }, 'Place: "docker" is 5. It must be a string or an object.'],
    [{ docker: {} }, 'Place: "docker.host" is missing. It must be a string.'],
    [{ onPull: "log" }, 'Place: "onPull" is not valid. It must be a function.'],
    [{ workDir: 5, timeoutMs: 0 }, '"timeoutMs" must be a positive number'],
    ["python", "Place: the options are a string. They must be an object."],
    [null, "Place: the options are null. They must be an object."],
    [[1, 2], "Place: the options are an array. They must be an object, such as { network: … }."],
  ])("says what is wrong with %j and what it must be", (options, message) => {
    expect(refusal(options)).toContain(message);
  });

  it("never shows the text of a string, which may be a secret", () => {
    expect(refusal({ env: "KEY=secret-text" })).not.toContain("secret-text");
    expect(refusal({ docker: { host: "x", certPath: ["secret-text"] } })).not.toContain("secret-text");
  });

  it("keeps values out of everything that is printed of an error", () => {
    const options = { docker: { host: "secret-text" }, env: { KEY: "secret-text" }, timeout: "secret-text" };
    const make = () => checkOptions(schema, options, "Place");
    expect(make).toThrow(expect.toSatisfy((error) => !inspect(error, { depth: 9 }).includes("secret-text")));
  });

  it("ignores undefined options and accepts inherited ones", () => {
    expect(checkOptions(schema, { network: undefined, docker: { host: "x", certPath: undefined } }, "Place")).toEqual({
      docker: { host: "x" },
    });
    expect(checkOptions(schema, Object.create({ network: "none" }), "Place")).toEqual({ network: "none" });
    expect(refusal(Object.create({ nework: "none" }))).toContain("network");
  });

  it("returns a copy that later changes do not affect", () => {
    const given = { env: { A: "1" } };
    const checked = checkOptions(schema, given, "Place");
    given.env.A = "2";
    expect(checked).toEqual({ env: { A: "1" } });
  });

  it("does not compile if an option has no schema or one of the wrong type", () => {
    const { network, ...others } = {
      network: z.enum(["none", "open"]).exactOptional(),
      timeoutMs: timeLimitOption.exactOptional(),
    };
    type Options = Pick<PlaceOptions, "network" | "timeoutMs">;
    const complete = { network, ...others } satisfies OptionSchemas<Options>;
    // @ts-expect-error the schema of `network` is missing
    const incomplete = others satisfies OptionSchemas<Options>;
    // @ts-expect-error `network` may be left out
    const required = { ...others, network: z.enum(["none", "open"]) } satisfies OptionSchemas<Options>;
    // @ts-expect-error `network` is not a number
    const mistaken = { ...others, network: z.number().exactOptional() } satisfies OptionSchemas<Options>;
    expect([complete, incomplete, required, mistaken]).toHaveLength(4);
  });
});

describe("checkExecuteArguments", () => {
  const blocks = [{ language: "python", code: "print(1)" }];

  it.each([
    ["print(1)", {}, 'executeCodeBlocks: "blocks" is a string. It must be an array of code blocks'],
    [undefined, {}, 'executeCodeBlocks: "blocks" is missing. It must be an array of code blocks'],
    [[], {}, 'executeCodeBlocks: "blocks" is empty. It must have at least one block.'],
    [[{ language: "python" }], {}, 'executeCodeBlocks: "blocks[0].code" is missing. It must be a string.'],
    [["print(1)"], {}, 'executeCodeBlocks: "blocks[0]" is a string. It must be an object.'],
    [
      blocks,
      { timeout: 60 },
      'executeCodeBlocks: unknown option "timeout". Did you mean "timeoutMs", in milliseconds?',
    ],
    [blocks, { signal: new AbortController() }, 'executeCodeBlocks: "signal" is an object. It must be an AbortSignal.'],
    [blocks, 5000, "executeCodeBlocks: the options are 5000. They must be an object."],
  ])("rejects %j with %j", (given, options, message) => {
    expect(() => checkExecuteArguments(given, options)).toThrow(message);
  });

  it("returns valid blocks and options", () => {
    const { signal } = new AbortController();
    const options = { signal, timeoutMs: Infinity, env: { A: "1" }, stdin: "" };
    expect(checkExecuteArguments(blocks, options)).toEqual({ blocks, options });
    expect(checkExecuteArguments(blocks, options).options.signal).toBe(signal);
  });
});

describe("on a runtime that is too old", () => {
  it("says so, rather than failing on a function that is missing there", () => {
    const toSorted = Object.getOwnPropertyDescriptor(Array.prototype, "toSorted") ?? {};
    Reflect.deleteProperty(Array.prototype, "toSorted");
    try {
      expect(() => checkOptions(z.strictObject({}), {}, "Executor")).toThrow(/too old for Fenced\. Use Node\.js 20/);
    } finally {
      Reflect.defineProperty(Array.prototype, "toSorted", toSorted);
    }
  });
});
