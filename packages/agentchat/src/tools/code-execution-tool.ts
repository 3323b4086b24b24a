import {
  codeBlockSchema,
  type CodeExecutor,
  type ComponentContext,
  type ComponentModel,
  componentModelSchema,
  describeCodeExecutor,
  describeCodeResult,
  type JsonObject,
  parseComponentConfig,
} from "@fenced/core";
import * as z from "zod";
import { dumpComponentModel } from "../common/dump-component-model.ts";
import { type SignalOptions, signalOption } from "../common/signal-option.ts";
import type { Tool } from "./tool.ts";

/** How an executor is offered as a tool. */
export interface CodeExecutionToolOptions {
  /** Default: `execute_code`. */
  readonly name?: string | undefined;
  /** Default: says what the tool does, in which languages, and which functions the code can import. */
  readonly description?: string | undefined;
}

const argumentsSchema = codeBlockSchema();

const configSchema = z.strictObject({
  codeExecutor: componentModelSchema,
  name: z.string().optional(),
  description: z.string().optional(),
});

/**
 * A code executor as a tool of an assistant. The output is as long as the executor lets it be; failures and empty
 * output are said in words.
 *
 * @example
 * await using executor = new LocalCommandLineCodeExecutor();
 * const analyst = new AssistantAgent({ name: "analyst", modelClient, tools: [new CodeExecutionTool(executor)] });
 */
export class CodeExecutionTool implements Tool, AsyncDisposable {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "tool";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly name: string;
  readonly parameters: z.ZodType = argumentsSchema;
  readonly #codeExecutor: CodeExecutor;
  readonly #description: string | undefined;
  #ownsExecutor = false;

  /** @param codeExecutor - where the code runs. Started when it is needed; stays the caller's, who stops it. */
  constructor(codeExecutor: CodeExecutor, { name = "execute_code", description }: CodeExecutionToolOptions = {}) {
    this.name = name;
    this.#codeExecutor = codeExecutor;
    this.#description = description;
  }

  /** Makes the tool that `dumpComponent` described. It owns its executor, and stops it when it is disposed of. */
  static async fromConfig(config: JsonObject, context: ComponentContext): Promise<CodeExecutionTool> {
    const { codeExecutor, ...options } = parseComponentConfig(configSchema, config, context.provider);
    const tool = new CodeExecutionTool(await context.load<CodeExecutor>(codeExecutor, "codeExecutor"), options);
    tool.#ownsExecutor = true;
    return tool;
  }

  get description(): string {
    return this.#description ?? describeCodeExecutor(this.#codeExecutor);
  }

  /** Runs the code and puts the result in words. */
  async execute(args: JsonObject, { signal }: SignalOptions): Promise<string> {
    const block = argumentsSchema.parse(args);
    const result = await this.#codeExecutor.executeCodeBlocks([block], signalOption(signal));
    return describeCodeResult(result, 1);
  }

  dumpComponent(): ComponentModel {
    const settings = {
      codeExecutor: this.#codeExecutor.dumpComponent(),
      name: this.name,
      description: this.#description,
    };
    return dumpComponentModel({ className: "CodeExecutionTool", componentType: "tool", settings });
  }

  /** Stops the executor if `loadComponent` made it for this tool. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ownsExecutor) await this.#codeExecutor.stop();
  }
}
