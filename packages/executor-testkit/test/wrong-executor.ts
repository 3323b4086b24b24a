import type {
  CodeBlock,
  CodeExecutor,
  CodeResult,
  ComponentModel,
  ExecuteOptions,
  ExecutionEvent,
  ExecutorCapabilities,
  FunctionPromptOptions,
  SubmitOptions,
  SubmittedRun,
  WorkspaceFiles,
} from "@fenced/core";

/** Wraps a good executor; a subclass breaks one thing. */
export class WrongExecutor implements CodeExecutor {
  protected readonly good: CodeExecutor;

  constructor(good: CodeExecutor) {
    this.good = good;
  }

  get capabilities(): ExecutorCapabilities {
    return this.good.capabilities;
  }

  get files(): WorkspaceFiles {
    return this.good.files;
  }

  start(): Promise<void> {
    return this.good.start();
  }

  stop(): Promise<void> {
    return this.good.stop();
  }

  restart(): Promise<void> {
    return this.good.restart();
  }

  executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    return this.good.executeCodeBlocks(blocks, options);
  }

  streamCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent> {
    return this.good.streamCodeBlocks(blocks, options);
  }

  submit(blocks: readonly CodeBlock[], options?: SubmitOptions): Promise<SubmittedRun> {
    return this.good.submit(blocks, options);
  }

  run(id: string): SubmittedRun {
    return this.good.run(id);
  }

  runs(): SubmittedRun[] {
    return this.good.runs();
  }

  formatFunctionsForPrompt(template?: string, options?: FunctionPromptOptions): string {
    return this.good.formatFunctionsForPrompt(template, options);
  }

  dumpComponent(): ComponentModel {
    return this.good.dumpComponent();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
