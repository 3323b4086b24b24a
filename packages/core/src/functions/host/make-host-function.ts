import * as z from "zod";
import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import type { JsonObject } from "../../json-value.ts";
import { checkOptions, optionsSchema, type OptionSchemas } from "../../options/check-options.ts";
import { callbackOption } from "../../options/option-types.ts";
import { isJavaScriptIdentifier, isPythonIdentifier } from "../names.ts";
import type { HostCallContext } from "./host-call.ts";
import { type HostFunction, hostFunctionMarker } from "./host-function.ts";
import { isStandardSchema, type JsonSchema, type StandardSchema } from "./standard-schema.ts";
import { valueSchema } from "./value-schema.ts";

/** What `hostFunction` makes a function from. */
export interface HostFunctionDefinition<Input, Output> {
  /** The name under which programs import it: an identifier of Python and of JavaScript. */
  readonly name: string;
  /** What it does, for the model that writes the calls. */
  readonly description: string;
  /** The arguments: a schema of zod, valibot or another library of Standard Schema, or a JSON schema, of an object. */
  readonly input: StandardSchema<unknown, Input> | JsonSchema;
  /** The result. It is checked, and tells the model what it gets. Default: any JSON. */
  readonly output?: StandardSchema<Output, unknown> | JsonSchema;
  /** It must not run without the executor's `approveHostCall`. Default: false. */
  readonly needsApproval?: boolean;
  /**
   * Runs on the host. What it returns goes to the program as JSON; of what it throws the program is told the name and the message.
   *
   * @param input - the arguments, as the schema gives them.
   */
  readonly execute: (input: Input, context: HostCallContext) => Output | Promise<Output>;
}

/** Names that the module of functions has itself. */
const taken: ReadonlySet<string> = new Set(["HostFunctionError"]);

const definitionSchema: z.ZodType<HostFunctionDefinition<unknown, unknown>> = optionsSchema({
  name: z
    .string()
    .refine(
      (name) => isPythonIdentifier(name) && isJavaScriptIdentifier(name) && !name.startsWith("__") && !taken.has(name),
      "must be a name that Python and JavaScript can import: letters, digits and _, and not a keyword",
    ),
  description: z.string(),
  input: schemaOption<HostFunctionDefinition<unknown, unknown>["input"]>(),
  output: schemaOption<NonNullable<HostFunctionDefinition<unknown, unknown>["output"]>>().exactOptional(),
  needsApproval: z.boolean().exactOptional(),
  execute: callbackOption<HostFunctionDefinition<unknown, unknown>["execute"]>(),
} satisfies OptionSchemas<HostFunctionDefinition<unknown, unknown>>);

function schemaOption<Schema>(): z.ZodType<Schema> {
  return z.custom<Schema>(
    (value) => isStandardSchema(value) || (typeof value === "object" && value !== null && !Array.isArray(value)),
    "must be a schema of zod or another library of Standard Schema, or a JSON schema",
  );
}

/**
 * Makes a function of this program callable by code that an executor runs, wherever that is: the program in there calls it like
 * any function, and it runs out here, with all that this program has.
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

/** @param checks - `lenient`: of a JSON schema that cannot be checked only the kind of value is. */
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
    execute,
  } = checkOptions(definitionSchema, definition, "hostFunction");
  const inputs = valueSchema(input, "input", { owner: `${name}'s arguments`, checks });
  const outputs =
    output === undefined ? undefined : valueSchema(output, "output", { owner: `${name}'s result`, checks });
  const kind = inputs.json?.["type"] ?? "object";
  if (kind !== "object") {
    throw new InvalidInputError(`hostFunction: the arguments of ${name} are of the type ${JSON.stringify(kind)}`, {
      remedy: "Describe an object with a field for each argument.",
    });
  }
  return Object.freeze({
    [hostFunctionMarker]: true,
    name,
    description,
    inputSchema: inputs.json,
    outputSchema: outputs?.json,
    needsApproval,
    checkInput: inputs.check,
    execute: async (checked: unknown, context: HostCallContext): Promise<unknown> => {
      const result = await execute(checked, context);
      if (!outputs) return result;
      const value = await outputs.check(result);
      if ("value" in value) return value.value;
      throw new InvalidInputError(`${name} returned what its \`output\` does not allow: ${value.problem}`, {
        remedy: "This is a mistake of the function, not of the call.",
      });
    },
  });
}
