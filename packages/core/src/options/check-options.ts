import * as z from "zod";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import type { CodeBlock } from "../execution/code-block.ts";
import type { CodeExecutor } from "../execution/code-executor.ts";
import type { ModelOutputLimits } from "../execution/code-result-for-model.ts";
import type { ExecuteOptions } from "../execution/execute-options.ts";
import { type HostFunction, isHostFunction } from "../functions/host/host-function.ts";
import type { ChatCompletionClient } from "../models/chat-completion-client.ts";
import { explainIssues } from "./explain-issues.ts";
import { requirement } from "./requirement.ts";

/**
 * Validates a caller's options at run time: JavaScript callers have no types, and neither do config files. Call it
 * first in every constructor and function that takes options, and use what it returns.
 *
 * @param schema - made with `optionsSchema`, so that a misspelled name is an error.
 * @param options - the caller's options. Options that are `undefined` count as not given.
 * @param owner - the class or function, for the message.
 * @returns a copy, independent of later changes to the caller's object.
 * @throws InvalidInputError that names each wrong option, what it must be, and the closest match for an unknown one.
 *
 * @example
 * constructor(options: MyExecutorOptions = {}) {
 *   const checked = checkOptions(myExecutorOptions, options, "MyCodeExecutor");
 *   super(checked);
 * }
 */
export function checkOptions<Options>(
  schema: z.ZodType<Options>,
  options: unknown,
  owner: string,
): GivenOptions<Options> {
  checkRuntime();
  const parsed = schema.safeParse(options, { error: requirement, reportInput: true });
  if (parsed.success) return given(parsed.data);
  const { problem, ...whatToDo } = explainIssues(parsed.error.issues, owner);
  // No cause: the issues contain the values, which may be secrets.
  throw new InvalidInputError(problem, whatToDo);
}

/**
 * All that Fenced offers checks its options first; a check when a module is loaded would be a side effect, which bundlers
 * remove.
 *
 * @throws InvalidInputError on a runtime that would fail later, with an error about a function that is missing.
 */
function checkRuntime(): void {
  if ("toSorted" in Array.prototype) return;
  throw new InvalidInputError("This JavaScript runtime is too old for Fenced", { remedy: "Use Node.js 20 or later." });
}

/** Options as `checkOptions` returns them: one that is absent is not there, rather than `undefined`. */
export type GivenOptions<Options> = { [Name in keyof Options]: Exclude<Options[Name], undefined> };

/** The schemas leave out what is `undefined`; see `withoutUndefined`. */
function given<Options>(options: Options): GivenOptions<Options>;
function given(options: unknown): unknown {
  return options;
}

/**
 * The schemas of an interface's options, with `exactOptional()` for optional ones. An option without a schema, or with
 * a schema of another type, does not compile.
 */
export type OptionSchemas<Options> = {
  readonly [Name in keyof Options]-?: Partial<Pick<Options, Name>> extends Pick<Options, Name>
    ? z.ZodExactOptional<z.ZodType<Exclude<Options[Name], undefined>>>
    : z.ZodType<Options[Name]>;
};

/**
 * The schema of an options object: it allows no other names, and an option that is `undefined` counts as not given.
 *
 * @example
 * export const myExecutorOptions: z.ZodType<MyExecutorOptions> = optionsSchema({
 *   ...baseExecutorConfig,
 *   region: z.string(),
 *   retries: wholeNumberOption({ from: 0 }).exactOptional(),
 * } satisfies OptionSchemas<MyExecutorOptions>);
 */
export function optionsSchema<Shape extends z.core.$ZodShape>(
  shape: Shape,
): z.ZodType<z.output<z.ZodObject<Shape, z.core.$strict>>> {
  return z.preprocess(withoutUndefined, z.strictObject(shape));
}

/** A copy of an object without its fields that are `undefined`; any other value unchanged. */
export function withoutUndefined(options: unknown): unknown {
  if (typeof options !== "object" || options === null || Array.isArray(options)) return options;
  const entries: [string, unknown][] = [];
  // Include inherited options: an object made from defaults with Object.create has them.
  for (const name in options) {
    const value: unknown = Reflect.get(options, name);
    if (value !== undefined) entries.push([name, value]);
  }
  return Object.fromEntries(entries);
}

/** Any function; the compiler checks its parameters and its result. */
export function callbackOption<Callback>(): z.ZodType<Callback> {
  return z.custom<Callback>((value) => typeof value === "function", "must be a function");
}

/**
 * An object with methods of these names: an executor, a model client, a credential. Passed through, not copied.
 *
 * @param what - what the caller should pass, after "must be": `a code executor`.
 */
export function objectOption<Kind extends object>(
  methods: readonly (string & keyof Kind)[],
  what: string,
): z.ZodType<Kind> {
  return z.custom<Kind>((value) => hasMethods(value, methods), `must be ${what}`);
}

function hasMethods(value: unknown, methods: readonly string[]): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    methods.every((method) => typeof Reflect.get(value, method) === "function")
  );
}

/** An `AbortSignal` from any realm. */
export const signalOption: z.ZodType<AbortSignal> = objectOption<AbortSignal>(
  ["addEventListener", "removeEventListener", "throwIfAborted"],
  "an AbortSignal",
);

/** What every version of the contract has, and what an executor that was written for an older one lacks. */
const executorMethods = {
  always: ["executeCodeBlocks", "streamCodeBlocks"],
  later: ["submit", "run", "runs"],
} as const satisfies Record<string, readonly (keyof CodeExecutor)[]>;

/** A code executor; passed through, not copied. */
export const codeExecutorOption: z.ZodType<CodeExecutor> = z.custom<CodeExecutor>(
  (value) => hasMethods(value, executorMethods.always) && hasMethods(value, executorMethods.later),
  {
    error: ({ input }) => {
      if (!hasMethods(input, executorMethods.always)) return "must be a code executor";
      const missing = executorMethods.later.filter((name) => !hasMethods(input, [name]));
      return `must be a code executor of this version, but lacks ${missing.map((name) => `${name}()`).join(", ")}. Update the package that it is from; if it is your own, extend \`BaseCodeExecutor\` of @fenced/executor-kit`;
    },
  },
);

/** A model client; passed through, not copied. */
export const modelClientOption: z.ZodType<ChatCompletionClient> = objectOption<ChatCompletionClient>(
  ["create"],
  "a model client",
);

/** A time limit in milliseconds; `Infinity` for no limit. */
export const timeLimitOption: z.ZodType<number> = z.custom<number>(
  (value) => typeof value === "number" && value > 0,
  "must be a positive number of milliseconds, or Infinity for no limit",
);

/** A delay in milliseconds that a timer accepts. */
export const millisecondsOption: z.ZodType<number> = z.custom<number>(
  (value) => typeof value === "number" && value >= 0 && value < 2 ** 31,
  "must be a number of milliseconds, from 0 to 2147483647",
);

/** A whole number. */
export function wholeNumberOption({ from, to = Number.MAX_SAFE_INTEGER, unit }: WholeNumber): z.ZodType<number> {
  const end = to === Number.MAX_SAFE_INTEGER ? `, at least ${from}` : ` from ${from} to ${to}`;
  return z.custom<number>(
    (value) => typeof value === "number" && Number.isSafeInteger(value) && value >= from && value <= to,
    `must be a whole number${unit === undefined ? "" : ` of ${unit}`}${end}`,
  );
}

/** The range of a whole number. */
export interface WholeNumber {
  readonly from: number;
  /** Default: the largest safe integer. */
  readonly to?: number;
  /** What is counted: `bytes`. */
  readonly unit?: string;
}

/** Text values by name: environment variables, headers, labels. */
export const stringsOption: z.ZodType<Record<string, string>> = z.record(z.string(), z.string());

/** Environment variables for a process. */
export const environmentOption: z.ZodType<Record<string, string>> = stringsOption.check(({ value, issues }) => {
  for (const [name, text] of Object.entries(value)) {
    if (/^[^=\0]+$/.test(name) && !text.includes("\0")) continue;
    const message = "must have a name without `=`, and no NUL character in its name or value";
    issues.push({ code: "custom", path: [name], input: text, message });
  }
});

/** The schemas of `ModelOutputLimits`. */
export const modelOutputLimits: OptionSchemas<ModelOutputLimits> = {
  maxOutputCharacters: wholeNumberOption({ from: 0, unit: "characters" }).exactOptional(),
  maxImages: wholeNumberOption({ from: 0 }).exactOptional(),
  maxImageBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
};

/** A function that code can call on the host; passed through, not copied. */
export const hostFunctionOption: z.ZodType<HostFunction> = z.custom<HostFunction>(
  isHostFunction,
  "must be a host function: create one with hostFunction()",
);

/** The arguments of an executor's call. */
export interface ExecuteArguments {
  readonly blocks: readonly CodeBlock[];
  readonly options: ExecuteOptions;
}

const codeBlocks: z.ZodType<readonly CodeBlock[]> = z
  .array(z.object({ language: z.string(), code: z.string() }), {
    error: 'must be an array of code blocks: [{ language: "python", code: "print(1)" }]',
  })
  .min(1, "must have at least one block");

/** The schemas of `ExecuteOptions`, for functions that accept these options and more. */
export const executeOptionSchemas: OptionSchemas<ExecuteOptions> = {
  signal: signalOption.exactOptional(),
  timeoutMs: timeLimitOption.exactOptional(),
  totalTimeoutMs: timeLimitOption.exactOptional(),
  env: environmentOption.exactOptional(),
  stdin: z.string().exactOptional(),
  functions: z.array(hostFunctionOption).exactOptional(),
};

const executeOptions: z.ZodType<ExecuteOptions> = optionsSchema(executeOptionSchemas);

const blocksArgument = z.object({ blocks: codeBlocks });

/**
 * Validates the arguments of `executeCodeBlocks` and `streamCodeBlocks`, for executors without the base class.
 *
 * @throws InvalidInputError if there is nothing to run, or an option is unknown or wrong.
 */
export function checkExecuteArguments(blocks: unknown, options: unknown): ExecuteArguments {
  return {
    blocks: checkOptions(blocksArgument, { blocks }, "executeCodeBlocks").blocks,
    options: checkOptions(executeOptions, options, "executeCodeBlocks"),
  };
}
