import { callbackOption, checkOptions, objectOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { ExecutorSubject } from "./executor-subject.ts";
import type { FixtureLanguage } from "./languages/fixture-language.ts";
import type { SuiteOptions } from "./suite-options.ts";
import type { TestRunner } from "./test-runner.ts";

const subjectSchemas: OptionSchemas<ExecutorSubject> = {
  name: z.string().min(1),
  create: callbackOption<ExecutorSubject["create"]>(),
  load: callbackOption<ExecutorSubject["load"]>(),
  connect: callbackOption<NonNullable<ExecutorSubject["connect"]>>().exactOptional(),
  runsEnd: z.boolean().exactOptional(),
  takesWorkDir: z.boolean(),
  takesNetworkPolicy: z.boolean().exactOptional(),
  hostCommand: z.tuple([z.string()], z.string()),
  listResources: callbackOption<NonNullable<ExecutorSubject["listResources"]>>().exactOptional(),
  breakPlace: callbackOption<NonNullable<ExecutorSubject["breakPlace"]>>().exactOptional(),
  live: z.boolean().exactOptional(),
  asksOnly: z.boolean().exactOptional(),
  closesOutput: z.boolean().exactOptional(),
  keepsInputOpen: z.boolean().exactOptional(),
  patienceMs: z.number().positive().exactOptional(),
  language: objectOption<FixtureLanguage>(["program", "print"], "programs in a language").exactOptional(),
};

const runnerSchema = z.object({
  runner: objectOption<TestRunner>(["describe", "it"], "{ describe, it }"),
  afterAll: callbackOption<NonNullable<TestRunner["afterAll"]>>().exactOptional(),
});
const subjectSchema = optionsSchema(subjectSchemas);
const suiteOptions: z.ZodType<SuiteOptions> = optionsSchema({
  groups: z.array(z.string()).exactOptional(),
  cases: z.enum(["all", "place", "connection", "smoke"]).exactOptional(),
  concurrent: z.boolean().exactOptional(),
} satisfies OptionSchemas<SuiteOptions>);

/**
 * Validates the arguments of `testCodeExecutor`.
 *
 * @returns the options.
 * @throws InvalidInputError if a part of the runner, of the subject or an option is unknown or wrong.
 */
export function checkSuiteArguments(runner: unknown, subject: unknown, options: unknown): SuiteOptions {
  const afterAll = typeof runner === "object" && runner !== null ? valueOf(runner, "afterAll") : undefined;
  checkOptions(runnerSchema, { runner, ...(afterAll === undefined ? {} : { afterAll }) }, "testCodeExecutor");
  checkOptions(subjectSchema, withInherited(subject), "testCodeExecutor");
  return checkOptions(suiteOptions, options, "testCodeExecutor");
}

/** A subject may be an instance of a class, whose methods are not enumerable. */
function withInherited(subject: unknown): unknown {
  if (typeof subject !== "object" || subject === null) return subject;
  const names = new Set([...Object.keys(subjectSchemas), ...Object.keys(subject)]);
  return Object.fromEntries([...names].map((name): [string, unknown] => [name, valueOf(subject, name)]));
}

/** A getter may be unable to return the command before a test hook has started the place that it names. */
function valueOf(subject: object, name: string): unknown {
  const isGetter = Object.getOwnPropertyDescriptor(subject, name)?.get !== undefined;
  return isGetter && name === "hostCommand" ? ["known when it is needed"] : Reflect.get(subject, name);
}
