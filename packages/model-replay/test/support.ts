import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  ChatCompletionClient,
  ComponentModel,
  CreateResult,
  ModelInfo,
  ModelMessage,
  ModelUsage,
} from "@fenced/core";
import { onTestFinished } from "vitest";

export const modelInfo: ModelInfo = { family: "test", vision: true, functionCalling: true, structuredOutput: true };

/** A file name in a folder that is removed after the test. */
export async function temporaryFile(name = "record.jsonl"): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "fenced-replay-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return join(folder, name);
}

export function ask(text: string): ModelMessage[] {
  return [{ role: "user", content: text }];
}

export function answer(content: CreateResult["content"], more: Partial<CreateResult> = {}): CreateResult {
  return { content, usage: { promptTokens: 3, completionTokens: 2 }, finishReason: "stop", ...more };
}

/** A client with prepared answers; an `Error` is thrown. Streams word by word. */
export class PreparedClient implements ChatCompletionClient {
  readonly modelInfo: ModelInfo = modelInfo;
  readonly usage: ModelUsage = { promptTokens: 70, completionTokens: 7 };
  readonly #answers: (CreateResult | Error)[];

  constructor(answers: (CreateResult | Error)[]) {
    this.#answers = [...answers];
  }

  async create(): Promise<CreateResult> {
    return Promise.resolve(this.#next());
  }

  async *createStream(): AsyncGenerator<string | CreateResult> {
    const result = await Promise.resolve(this.#next());
    if (typeof result.content === "string") yield* result.content.split(/(?<= )/);
    yield result;
  }

  dumpComponent(): ComponentModel {
    return { provider: "prepared:Client", componentType: "model", version: 1, config: {} };
  }

  #next(): CreateResult {
    const next = this.#answers.shift() ?? new Error("no more answers");
    if (next instanceof Error) throw next;
    return next;
  }
}

export async function collect(stream: AsyncIterable<string | CreateResult>): Promise<(string | CreateResult)[]> {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}
