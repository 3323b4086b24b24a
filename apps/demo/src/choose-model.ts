import { existsSync } from "node:fs";
import type { ChatCompletionClient } from "@fenced/core";
import { RecordingChatCompletionClient, ReplayChatCompletionClient } from "@fenced/model-replay";
import { recordFor } from "./default-task.ts";
import { DemoError } from "./demo-error.ts";
import type { DemoOptions } from "./demo-options.ts";

/** The coder's model, and its description. */
export interface ChosenModel {
  readonly client: ChatCompletionClient;
  readonly description: string;
  readonly replayed: boolean;
}

const openai = "https://api.openai.com/v1";

/** Checks that there will be a model, before anything is started. */
export function assertModel(options: DemoOptions): void {
  if (options.replay !== undefined) {
    if (existsSync(options.replay)) return;
    throw new DemoError(`There is no recording ${options.replay}. Create one with --record.`, 2);
  }
  if (isLive()) {
    assertAddress();
    return;
  }
  if (options.task !== undefined || options.model !== undefined) {
    const what = options.task === undefined ? `Model ${options.model}` : "A task of your own";
    throw new DemoError(
      `${what} needs a live model. Set OPENAI_API_KEY, or OPENAI_BASE_URL for another service with OpenAI's protocol ` +
        "(e.g. http://localhost:11434/v1 with --model NAME), or pass --replay FILE.",
      2,
    );
  }
}

function assertAddress(): void {
  const address = variable("OPENAI_BASE_URL") ?? openai;
  if (URL.canParse(address) && /^https?:/.test(address)) return;
  throw new DemoError("OPENAI_BASE_URL is not a URL. Set it to one such as http://localhost:11434/v1.", 2);
}

/**
 * The coder's model: a given recording, a live model if there is a key or an endpoint, or otherwise the demo's own
 * recording.
 *
 * @param languages - the executor's languages, which decide which recording to use.
 */
export async function chooseModel(options: DemoOptions, languages: readonly string[]): Promise<ChosenModel> {
  const model = await chooseUnrecorded(options, languages);
  if (options.record === undefined) return model;
  return { ...model, client: new RecordingChatCompletionClient({ client: model.client, file: options.record }) };
}

async function chooseUnrecorded(options: DemoOptions, languages: readonly string[]): Promise<ChosenModel> {
  if (options.replay !== undefined) return replay(options.replay, `The coder is replayed from ${options.replay}.`);
  if (isLive()) return liveModel(options.model);
  const file = recordFor(options, languages);
  if (!existsSync(file)) {
    throw new DemoError(
      `The recorded coder writes Python or JavaScript, but only ${languages.join(", ")} runs here. ` +
        "Set OPENAI_API_KEY or OPENAI_BASE_URL for a live coder, or choose another --executor.",
      1,
    );
  }
  return replay(
    file,
    "The coder is a recording; its code runs for real. Go live with OPENAI_API_KEY or OPENAI_BASE_URL, and --model.",
  );
}

function replay(file: string, description: string): ChosenModel {
  // A recording that appears all at once would not look like a chat.
  const chunkDelayMs = process.stdout.isTTY ? 12 : 0;
  return { client: new ReplayChatCompletionClient({ file, chunkDelayMs }), description, replayed: true };
}

function isLive(): boolean {
  return variable("OPENAI_API_KEY") !== undefined || variable("OPENAI_BASE_URL") !== undefined;
}

async function liveModel(name: string | undefined): Promise<ChosenModel> {
  const baseURL = variable("OPENAI_BASE_URL") ?? openai;
  const modelName = name ?? variable("OPENAI_MODEL") ?? (baseURL === openai ? "gpt-4.1-mini" : undefined);
  if (modelName === undefined) throw new DemoError(`Choose a model of ${baseURL} with --model.`, 2);
  // Only a live model needs the AI SDK, which is slow to load.
  const [{ createOpenAICompatible }, { AISDKChatCompletionClient }] = await Promise.all([
    import("@ai-sdk/openai-compatible"),
    import("@fenced/model-ai-sdk"),
  ]);
  const apiKey = variable("OPENAI_API_KEY");
  const provider = createOpenAICompatible({
    name: "openai",
    baseURL,
    includeUsage: true,
    ...(apiKey !== undefined && { apiKey }),
  });
  return {
    client: new AISDKChatCompletionClient({ model: provider(modelName) }),
    description: `The coder is ${modelName} at ${new URL(baseURL).host}.`,
    replayed: false,
  };
}

function variable(name: string): string | undefined {
  const value = process.env[name];
  return value === "" ? undefined : value;
}
