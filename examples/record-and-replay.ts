// Records a model's answers in a file, and replays them without the model.
import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
// #region replay
import { RecordingChatCompletionClient, ReplayChatCompletionClient } from "@fenced/model-replay";
// #endregion
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
await using server = await startOpenAIServer([{ text: "Three backticks, and what is between them." }]);
const service = createOpenAICompatible({ name: "service", baseURL: server.baseURL });
const liveClient = new AISDKChatCompletionClient({ model: service("qwen3") });

// #region replay
const recording = new RecordingChatCompletionClient({ client: liveClient, file: "session.jsonl" });
await recording.create([{ role: "user", content: "What is a fence?" }]);

const replay = new ReplayChatCompletionClient({ file: "session.jsonl" });
const { content } = await replay.create([{ role: "user", content: "What is a fence?" }]);
// #endregion

assert.equal(content, "Three backticks, and what is between them.");
assert.equal(server.requests.length, 1, "the replay asked nobody");
await assert.rejects(replay.create([{ role: "user", content: "Why?" }]), /Request 2 is beyond the record/);
