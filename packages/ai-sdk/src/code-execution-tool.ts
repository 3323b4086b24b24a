import {
  canonicalLanguage,
  type CodeBlock,
  codeBlockSchema,
  type CodeExecutor,
  describeCodeExecutor,
  InvalidInputError,
} from "@fenced/core";
import { checkOptions, codeExecutorOption, optionsSchema } from "@fenced/core/options";
import type { Tool, ToolResultPart } from "ai";
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
 * started, before that what it is designed for.
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
  const languages = (): string[] => offeredLanguages(executor, checked.languages);
  languages();
  const functions = codeModeFunctions(executor, checked);
  const { description, needsApproval, imagesToModel = true } = checked;
  return {
    get description() {
      return description ?? describeCodeExecutor(executor, languages(), functions);
    },
    get inputSchema() {
      return codeBlockSchema(languages());
    },
    ...(needsApproval === undefined ? {} : { needsApproval }),
    execute: (block, { abortSignal, ...callOptions }) =>
      runCode(executor, block, { ...checked, signal: abortSignal, callOptions }),
    toModelOutput: ({ output }) => toModelOutput(output, imagesToModel),
  };
}

/**
 * The languages to offer to a model: the executor's, limited to `wanted`.
 *
 * @throws InvalidInputError if the executor runs none of the wanted languages.
 */
function offeredLanguages({ capabilities }: CodeExecutor, wanted: readonly string[] | undefined): string[] {
  const available = capabilities.languages.map(canonicalLanguage);
  if (wanted === undefined) return available;
  const names = new Set(wanted.map(canonicalLanguage));
  const offered = available.filter((language) => names.has(language));
  if (offered.length > 0) return offered;
  throw new InvalidInputError(`The executor runs none of the languages ${wanted.join(", ")}`, {
    remedy: `Offer languages that it runs: ${available.join(", ")}.`,
  });
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
