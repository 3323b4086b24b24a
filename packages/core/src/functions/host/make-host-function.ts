import * as z from "zod";
import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import type { JsonObject } from "../../json-value.ts";
import { checkOptions, optionsSchema, type OptionSchemas, callbackOption } from "../../options/check-options.ts";
import { wellFormed } from "../../text/well-formed.ts";
import { isJavaScriptIdentifier, isPythonIdentifier } from "../names.ts";
import type { ApproveHostCall, HostCallContext, NeedsApproval } from "./host-call.ts";
import { type HostFunction, hostFunctionMarker } from "./host-function.ts";
import { isStandardSchema, type JsonSchema, type StandardSchema } from "./standard-schema.ts";
import { valueSchema } from "./value-schema.ts";

/** The definition of a host function. */
export interface HostFunctionDefinition<Input, Output> {
  /** The name that programs import: a valid identifier in Python and JavaScript. */
  readonly name: string;
  /** What it does, for the model that writes the calls. */
  readonly description: string;
  /**
   * The schema of the arguments: of zod, valibot or another Standard Schema library, or a JSON schema; it must describe
   * an object.
   */
  readonly input: StandardSchema<unknown, Input> | JsonSchema;
  /** The schema of the result. It validates the result, and tells the model what to expect. Default: any JSON. */
  readonly output?: StandardSchema<Output, unknown> | JsonSchema;
  /** Whether calls must not run without `approve`, or the executor's `approveHostCall`. Default: false. */
  readonly needsApproval?: NeedsApproval<Input>;
  /** Decides about each call of this function, after the executor's `approveHostCall` if there is one. Default: none. */
  readonly approve?: ApproveHostCall;
  /**
   * Runs on the host. Its return value goes to the program as JSON; if it throws, the program receives the error's name
   * and message.
   *
   * @param input - the arguments, as the schema returns them.
   */
  readonly execute: (input: Input, context: HostCallContext) => Output | Promise<Output>;
}

/** Names that the generated modules use themselves. A module that exports `then` cannot be loaded with `await import()`. */
const taken: ReadonlySet<string> = new Set(["HostFunctionError", "TypedDict", "_host_function", "callHost", "then"]);

/** Letters, marks and digits, but none that is drawn as nothing. */
const plainName = /^(?:(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}_])+$/u;

/**
 * Whether programs in both languages can import a function by this name. Python normalizes identifiers to NFKC, and its
 * older versions know neither all letters beyond the basic plane nor all signs that newer versions of Unicode allow: one
 * such name would break the module of all functions.
 */
export function isHostFunctionName(name: string): boolean {
  const isIdentifier = isPythonIdentifier(name) && isJavaScriptIdentifier(name) && name === name.normalize("NFKC");
  return (
    isIdentifier &&
    plainName.test(name) &&
    !/\p{Surrogate}|[\u{10000}-\u{10ffff}]/u.test(name) &&
    !name.startsWith("__") &&
    !taken.has(name)
  );
}

const definitionSchema: z.ZodType<HostFunctionDefinition<unknown, unknown>> = optionsSchema({
  name: z
    .string()
    .refine(
      isHostFunctionName,
      `must be a name that Python and JavaScript can import: letters, digits and _, but not a keyword and none of ${[...taken].join(", ")}`,
    ),
  description: z.string(),
  input: schemaOption<HostFunctionDefinition<unknown, unknown>["input"]>(),
  output: schemaOption<NonNullable<HostFunctionDefinition<unknown, unknown>["output"]>>().exactOptional(),
  needsApproval: z
    .union([z.boolean(), callbackOption<Exclude<NeedsApproval, boolean>>()], "must be true, false or a function")
    .exactOptional(),
  approve: callbackOption<ApproveHostCall>().exactOptional(),
  execute: callbackOption<HostFunctionDefinition<unknown, unknown>["execute"]>(),
} satisfies OptionSchemas<HostFunctionDefinition<unknown, unknown>>);

function schemaOption<Schema>(): z.ZodType<Schema> {
  return z.custom<Schema>(
    (value) => isStandardSchema(value) || (typeof value === "object" && value !== null && !Array.isArray(value)),
    "must be a schema of zod or another Standard Schema library, or a JSON schema",
  );
}

/**
 * Lets code that an executor runs, wherever it runs, call a function of this program. The sandboxed program calls it
 * like any other function; it executes here, with everything this program can access.
 *
 * @throws InvalidInputError if a part of the definition is unknown or wrong, or a JSON schema cannot be checked.
 *
 * @example
 * const weather = hostFunction({
 *   name: "get_weather",
 *   description: "The current weather in a city.",
 *   input: z.object({ city: z.string() }),
 *   output: z.object({ celsius: z.number() }),
 *   execute: async ({ city }, { signal }) => ({ celsius: await service.read(city, signal) }),
 * });
 * const executor = new DockerCommandLineCodeExecutor({ functions: [weather] });
 */
export function hostFunction<Input = JsonObject, Output = unknown>(
  definition: HostFunctionDefinition<Input, Output>,
): HostFunction {
  return makeHostFunction(definition, "exact");
}

/** @param checks - `lenient`: check a JSON schema without the parts that cannot be checked. */
export function makeHostFunction<Input, Output>(
  definition: HostFunctionDefinition<Input, Output>,
  checks: "exact" | "lenient",
): HostFunction {
  const {
    name,
    description,
    input,
    output,
    needsApproval = false,
    approve,
    execute,
  } = checkOptions(definitionSchema, definition, "hostFunction");
  const inputs = valueSchema(input, "input", { owner: `${name}'s arguments`, checks });
  const outputs =
    output === undefined ? undefined : valueSchema(output, "output", { owner: `${name}'s result`, checks });
  const kind = inputs.json?.["type"] ?? "object";
  if (kind !== "object") {
    throw new InvalidInputError(
      `hostFunction: the input schema of ${name} has the type ${JSON.stringify(kind)}, not "object"`,
      {
        remedy: "Describe an object with a field for each argument.",
      },
    );
  }
  return Object.freeze({
    [hostFunctionMarker]: true,
    name,
    description: wellFormed(description),
    inputSchema: inputs.json,
    outputSchema: outputs?.json,
    needsApproval,
    ...(approve && { approve }),
    checkInput: inputs.check,
    execute: async (checked: unknown, context: HostCallContext): Promise<unknown> => {
      const result = await execute(checked, context);
      if (!outputs) return result;
      const value = await outputs.check(result);
      if ("value" in value) return value.value;
      throw new InvalidInputError(
        `${name} returned a value that its \`output\` schema does not allow: ${value.problem}`,
        {
          remedy: "Fix the function or its `output` schema; the call is not at fault.",
        },
      );
    },
  });
}
