// Records a model's answers in a file, and replays them without the model.
import assert from "node:assert/strict";
// #region replay
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
import { RecordingChatCompletionClient, ReplayChatCompletionClient } from "@fenced/model-replay";
// #endregion
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
await using server = await startOpenAIServer([{ text: "Three backticks, and what is between them." }]);
Object.assign(process.env, { OPENAI_BASE_URL: server.baseURL });

// #region replay
const baseURL = process.env.OPENAI_BASE_URL ?? "http://localhost:11434/v1";
const service = createOpenAICompatible({ name: "service", baseURL });
const client = new AISDKChatCompletionClient({ model: service("qwen3") });

const recording = new RecordingChatCompletionClient({ client, file: "session.jsonl" });
await recording.create([{ role: "user", content: "What is a fence?" }]);

const replay = new ReplayChatCompletionClient({ file: "session.jsonl" });
const { content } = await replay.create([{ role: "user", content: "What is a fence?" }]);
// #endregion

assert.equal(content, "Three backticks, and what is between them.");
assert.equal(server.requests.length, 1, "the replay sent no request");
await assert.rejects(replay.create([{ role: "user", content: "Why?" }]), /has 1 answer, but this is request 2/);
