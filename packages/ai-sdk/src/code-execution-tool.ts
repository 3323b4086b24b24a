import {
  canonicalLanguage,
  languageAmong,
  type CodeBlock,
  codeBlockSchema,
  type CodeExecutor,
  describeCodeExecutor,
  InvalidInputError,
  knownCapabilities,
} from "@fenced/core";
import { checkOptions, codeExecutorOption, optionsSchema } from "@fenced/core/options";
import { jsonSchema, type Schema, type Tool, type ToolResultPart } from "ai";
import * as z from "zod";
import type { CodeExecutionOutput } from "./code-execution-output.ts";
import { toolOptions, type CodeExecutionToolOptions } from "./code-execution-tool-options.ts";
import { codeModeFunctions } from "./code-mode.ts";
import { runCode } from "./run-code.ts";

const argumentsSchema = optionsSchema({ executor: codeExecutorOption, ...toolOptions });

/**
 * Creates a tool for `generateText`, `streamText` and agents of the Vercel AI SDK that runs code in an executor. Output
 * arrives as preliminary results while the code runs. A program that fails or times out is a result that the model can
 * learn from; a broken backend is a `tool-error`. The call's abort signal kills what is running.
 *
 * With `tools`, the code calls other tools as functions ("code mode"): the model sees what the program prints, not each
 * tool's result.
 *
 * The tool's description and languages reflect the executor's capabilities when they are read: exact once it has
 * started, before that what it is designed for. An executor of `ExecutorSessions` knows nothing before: it is started
 * when a model is first told about the tool, unless you name `languages`.
 *
 * @param executor - where the code runs. The first call starts it; you stop it.
 * @throws InvalidInputError if an option is unknown or wrong, the executor runs none of the wanted languages, or code
 * cannot call one of `tools`, because it has no `execute` or needs approval without `approveHostCall`.
 *
 * @example
 * await using executor = new LocalCommandLineCodeExecutor();
 * const { text } = await generateText({
 *   model,
 *   tools: { execute_code: codeExecutionTool(executor) },
 *   stopWhen: stepCountIs(5),
 *   prompt: "How many ways are there to choose 6 of 49?",
 * });
 */
export function codeExecutionTool(
  executor: CodeExecutor,
  options: CodeExecutionToolOptions = {},
): Tool<CodeBlock, CodeExecutionOutput> {
  const checked = checkOptions(argumentsSchema, { ...options, executor }, "codeExecutionTool");
  const languages = (): string[] | undefined => offeredLanguages(executor, checked.languages);
  languages();
  const functions = codeModeFunctions(executor, checked);
  const { description, needsApproval, imagesToModel = true } = checked;
  const describe = (): string => description ?? describeCodeExecutor(executor, languages(), functions);
  return {
    get description() {
      return describe();
    },
    get inputSchema() {
      const known = languages();
      return known ? codeBlockSchema(known) : schemaOnceStarted(executor, languages, describe);
    },
    ...(needsApproval === undefined ? {} : { needsApproval }),
    execute: (block, { abortSignal, ...callOptions }) =>
      runCode(executor, block, { ...checked, signal: abortSignal, callOptions }),
    toModelOutput: ({ output }) => toModelOutput(output, imagesToModel),
  };
}

/**
 * The languages to offer to a model: the executor's, limited to `wanted`; `undefined` if they are known only once it has
 * started.
 *
 * @throws InvalidInputError if the executor runs none of the wanted languages.
 */
function offeredLanguages(executor: CodeExecutor, wanted: readonly string[] | undefined): string[] | undefined {
  const available = knownCapabilities(executor)?.languages.map(canonicalLanguage);
  if (wanted === undefined) return available;
  if (available === undefined) return [...new Set(wanted.map(canonicalLanguage))];
  const names = new Set(wanted.map((name) => languageAmong(name, available)));
  const offered = available.filter((language) => names.has(language));
  if (offered.length > 0) return offered;
  throw new InvalidInputError(`The executor runs none of the languages ${wanted.join(", ")}`, {
    remedy: `Offer languages that it runs: ${available.join(", ")}.`,
  });
}

/**
 * A schema for which the AI SDK waits before it calls the model: it starts the executor, and then lists the languages
 * and describes the executor, which the tool's own description could not do yet. If it does not start, the tool stays
 * general: a chat that needs no code must not fail, and a call says what is wrong.
 */
function schemaOnceStarted(
  executor: CodeExecutor,
  languages: () => readonly string[] | undefined,
  describe: () => string,
): Schema<CodeBlock> {
  const general = codeBlockSchema();
  return jsonSchema(
    async () => {
      await executor.start().catch(() => {});
      const { $schema: _, ...started } = z.toJSONSchema(codeBlockSchema(languages()), {
        io: "input",
        target: "draft-7",
      });
      return { ...started, description: describe() };
    },
    {
      validate: (value) => {
        const { success, data, error } = general.safeParse(value);
        return success ? { success, value: data } : { success, error };
      },
    },
  );
}

/** Converts a result for the model: its text, followed by the images if the model should see them. */
function toModelOutput(output: CodeExecutionOutput, imagesToModel: boolean): ToolResultPart["output"] {
  // A stored chat may contain a call that was cut off while it ran.
  if (output.status === "running") {
    return { type: "text", value: `The code did not finish. Its last output was:\n${output.output}` };
  }
  const { text, images } = output;
  if (images.length === 0) return { type: "text", value: text };
  if (!imagesToModel) return { type: "text", value: `${text.trimEnd()}\n\n${shownToUser(images.length)}` };
  return {
    type: "content",
    value: [
      { type: "text", text },
      ...images.map(({ data, mediaType }) => ({ type: "image-data" as const, data, mediaType })),
    ],
  };
}

function shownToUser(count: number): string {
  return `The code showed ${count === 1 ? "1 image" : `${count} images`}, which you cannot see.`;
}
