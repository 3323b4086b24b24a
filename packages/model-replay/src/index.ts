export {
  RecordingChatCompletionClient,
  type RecordingChatCompletionClientOptions,
} from "./recording-chat-completion-client.ts";
export { ReplayChatCompletionClient, type ReplayChatCompletionClientOptions } from "./replay-chat-completion-client.ts";
