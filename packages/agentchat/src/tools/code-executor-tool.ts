import {
  codeBlockSchema,
  type CodeExecutor,
  type Component,
  type ComponentModel,
  componentModelSchema,
  defineComponent,
  describeCodeExecutor,
  codeResultForModel,
  type JsonObject,
  knownCapabilities,
} from "@fenced/core";
import { checkOptions, codeExecutorOption, wholeNumberOption } from "@fenced/core/options";
import * as z from "zod";
import { type SignalOptions, signalOption } from "../common/signal-option.ts";
import type { Tool } from "./tool.ts";

/** How an executor is offered as a tool. */
export interface CodeExecutorToolOptions {
  /** Default: `execute_code`. */
  readonly name?: string | undefined;
  /** Default: describes the tool, its languages and the functions that code can import. */
  readonly description?: string | undefined;
  /** Maximum characters of output for the model; longer output keeps its head and tail. Default: 30,000. */
  readonly maxOutputCharacters?: number | undefined;
}

const argumentsSchema = codeBlockSchema();

const toolOptions = z.strictObject({
  codeExecutor: codeExecutorOption,
  name: z.string().min(1).optional(),
  description: z.string().optional(),
  maxOutputCharacters: wholeNumberOption({ from: 0, unit: "characters" }).optional(),
});

const configSchema = z.strictObject({
  codeExecutor: componentModelSchema,
  name: z.string().optional(),
  description: z.string().optional(),
  maxOutputCharacters: z.number().optional(),
});

/**
 * Offers a code executor to an assistant as a tool. Long output keeps its head and tail; failures and empty output are
 * described in words.
 *
 * @example
 * await using executor = new LocalCommandLineCodeExecutor();
 * const analyst = new AssistantAgent({ name: "analyst", modelClient, tools: [new CodeExecutorTool(executor)] });
 */
export class CodeExecutorTool implements Tool, AsyncDisposable {
  /** Creates the tool that `dumpComponent` described. It owns its executor and stops it when it is disposed of. */
  static readonly component: Component<CodeExecutorTool> = defineComponent({
    provider: "@fenced/agentchat:CodeExecutorTool",
    componentType: "tool",
    schema: configSchema,
    load: async ({ codeExecutor, ...options }, context) => {
      const tool = new CodeExecutorTool(await context.load<CodeExecutor>(codeExecutor, "codeExecutor"), options);
      tool.#ownsExecutor = true;
      return tool;
    },
  });

  readonly name: string;
  readonly parameters: z.ZodType = argumentsSchema;
  readonly #codeExecutor: CodeExecutor;
  readonly #description: string | undefined;
  readonly #maxOutputCharacters: number | undefined;
  #ownsExecutor = false;

  /**
   * @param codeExecutor - where the code runs. It is started when needed; you stop it.
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  constructor(codeExecutor: CodeExecutor, options: CodeExecutorToolOptions = {}) {
    const checked = checkOptions(toolOptions, { ...options, codeExecutor }, "CodeExecutorTool");
    this.name = checked.name ?? "execute_code";
    this.#codeExecutor = checked.codeExecutor;
    this.#description = checked.description;
    this.#maxOutputCharacters = checked.maxOutputCharacters;
  }

  get description(): string {
    return this.#description ?? describeCodeExecutor(this.#codeExecutor);
  }

  /** Starts an executor that does not know before what it can do. */
  async prepare({ signal }: SignalOptions): Promise<void> {
    if (knownCapabilities(this.#codeExecutor)) return;
    // A call says what is wrong; a model that needs no code must get its answer.
    await this.#codeExecutor.start(signalOption(signal)).catch(() => {});
  }

  /** Runs the code and puts the result in words. */
  async execute(args: JsonObject, { signal }: SignalOptions): Promise<string> {
    const block = argumentsSchema.parse(args);
    const result = await this.#codeExecutor.executeCodeBlocks([block], signalOption(signal));
    const maxOutputCharacters = this.#maxOutputCharacters ?? 30_000;
    // Tools answer with text: the model is told how many images it does not see.
    return codeResultForModel(result, 1, { maxImages: 0, maxOutputCharacters }).text;
  }

  dumpComponent(): ComponentModel {
    const settings = {
      codeExecutor: this.#codeExecutor.dumpComponent(),
      name: this.name,
      description: this.#description,
      maxOutputCharacters: this.#maxOutputCharacters,
    };
    return CodeExecutorTool.component.dump(settings);
  }

  /** Stops the executor if `loadComponent` created it for this tool. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ownsExecutor) await this.#codeExecutor.stop();
  }
}
