import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { CodeBlock, CodeResult, ExecuteOptions, ExecutionEvent } from "@fenced/core";
import { WrongExecutor } from "./wrong-executor.ts";

export class DropsStandardError extends WrongExecutor {
  override async executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    const result = await super.executeCodeBlocks(blocks, options);
    return { ...result, stderr: "", output: result.stdout };
  }
}

export class IgnoresFailures extends WrongExecutor {
  override async executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    const results: CodeResult[] = [];
    for (const block of blocks) results.push(await super.executeCodeBlocks([block], options));
    const last = results.at(-1) ?? (await super.executeCodeBlocks(blocks, options));
    return { ...last, blocks: results.flatMap((result) => result.blocks) };
  }
}

export class IgnoresTimeout extends WrongExecutor {
  override executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    return super.executeCodeBlocks(blocks, { ...options, timeoutMs: Number.POSITIVE_INFINITY });
  }
}

export class ThrowsOnUnknownLanguage extends WrongExecutor {
  override async executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    if (blocks.some(({ language }) => language === "klingon")) throw new Error("unknown language");
    return super.executeCodeBlocks(blocks, options);
  }
}

export class RemembersEnvironment extends WrongExecutor {
  #env: Readonly<Record<string, string>> = {};

  override executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    this.#env = { ...this.#env, ...options?.env };
    return super.executeCodeBlocks(blocks, { ...options, env: this.#env });
  }
}

export class SaysItIsStateful extends WrongExecutor {
  override get capabilities() {
    return { ...super.capabilities, stateful: true };
  }
}

export class AsksTheShellForArguments extends WrongExecutor {
  override executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    return super.executeCodeBlocks(
      blocks.map((block) => ({ ...block, code: block.code.replaceAll("$HOME", process.env["HOME"] ?? "/home") })),
      options,
    );
  }
}

export class NeverStops extends WrongExecutor {
  override async stop(): Promise<void> {}
}

export class HangsInStop extends WrongExecutor {
  override async stop(): Promise<void> {
    await super.stop();
    await new Promise(() => {});
  }
}

export class RestartsInName extends WrongExecutor {
  override async restart(): Promise<void> {}
}

export class RejectsWithErrorOfItsOwn extends WrongExecutor {
  override async executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    try {
      return await super.executeCodeBlocks(blocks, options);
    } catch (error) {
      throw options?.signal?.aborted === true ? new Error("aborted", { cause: error }) : error;
    }
  }
}

export class RejectsBeforeTheDeath extends WrongExecutor {
  override async executeCodeBlocks(blocks: readonly CodeBlock[], options: ExecuteOptions = {}): Promise<CodeResult> {
    const { signal, ...rest } = options;
    const late = new AbortController();
    const run = super.executeCodeBlocks(blocks, { ...rest, signal: late.signal });
    run.catch(() => {});
    const aborted = new Promise<never>((_resolve, reject) => {
      signal?.addEventListener("abort", () => {
        setTimeout(() => late.abort(), 3000);
        reject(signal.reason as Error);
      });
    });
    return Promise.race([run, aborted]);
  }
}

export class IsEager extends WrongExecutor {
  override streamCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent> {
    const result = this.good.executeCodeBlocks(blocks, options);
    return (async function* (): AsyncGenerator<ExecutionEvent> {
      yield { type: "result", result: await result };
    })();
  }
}

export class OutlivesItsConsumer extends WrongExecutor {
  override streamCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent> {
    const inner = super.streamCodeBlocks(blocks, options)[Symbol.asyncIterator]();
    return { [Symbol.asyncIterator]: () => ({ next: () => inner.next() }) };
  }
}

export class ReadsAheadOfItsConsumer extends WrongExecutor {
  override streamCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent> {
    const inner = super.streamCodeBlocks(blocks, options);
    return (async function* (): AsyncGenerator<ExecutionEvent> {
      const events: ExecutionEvent[] = [];
      const ahead = async (): Promise<void> => {
        for await (const event of inner) events.push(event);
      };
      // The suite stops the executor in the middle of it.
      ahead().catch(() => {});
      for (;;) {
        const event = events.shift();
        if (event === undefined) await sleep(10);
        else yield event;
        if (event?.type === "result") return;
      }
    })();
  }
}

export class EndsTwice extends WrongExecutor {
  override streamCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): AsyncIterable<ExecutionEvent> {
    const inner = super.streamCodeBlocks(blocks, options);
    return (async function* (): AsyncGenerator<ExecutionEvent> {
      for await (const event of inner) {
        yield event;
        if (event.type === "result") yield event;
      }
    })();
  }
}

export class KeepsTheHeadOnly extends WrongExecutor {
  override async executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    const { blocks: results, ...result } = await super.executeCodeBlocks(blocks, options);
    const cut = (text: string) => text.slice(0, 4096);
    const truncated = result.output.length > 4096;
    return {
      ...result,
      output: cut(result.output),
      stdout: cut(result.stdout),
      truncated,
      blocks: results.map((block) => ({ ...block, truncated })),
    };
  }
}

export class OpensAnyFile extends WrongExecutor {
  override get files() {
    const { files } = this.good;
    return new Proxy(files, {
      get: (target, name) =>
        name === "read" ? (path: string) => readFile(path) : (Reflect.get(target, name) as () => void).bind(target),
    });
  }
}

export class RunsOneCallAtATime extends WrongExecutor {
  #last: Promise<unknown> = Promise.resolve();

  override executeCodeBlocks(blocks: readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    const next = this.#last.then(() => super.executeCodeBlocks(blocks, options));
    this.#last = next.catch(() => {});
    return next;
  }
}

export class TellsTheBodies extends WrongExecutor {
  override formatFunctionsForPrompt(template?: string): string {
    const prompt = super.formatFunctionsForPrompt(template);
    return prompt === "" ? "" : `${prompt} secret_body`;
  }
}

export class ForgetsSettings extends WrongExecutor {
  override dumpComponent() {
    return { ...super.dumpComponent(), config: {} };
  }
}
