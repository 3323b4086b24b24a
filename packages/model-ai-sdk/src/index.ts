export { AISDKChatCompletionClient } from "./ai-sdk-chat-completion-client.ts";
export type { AISDKCallSettings, AISDKChatCompletionClientOptions } from "./ai-sdk-chat-completion-client-options.ts";
