export { AssistantAgent } from "./agents/assistant-agent.ts";
export type { AssistantAgentOptions } from "./agents/assistant-agent-options.ts";
export { BaseChatAgent, type BaseChatAgentOptions } from "./agents/base-chat-agent.ts";
export {
  type ChatAgent,
  isResponse,
  isTaskResult,
  type Response,
  type RunOptions,
  type Task,
  type TaskResult,
} from "./agents/chat-agent.ts";
export type { ApprovalFunc, ApprovalRequest, ApprovalResponse } from "./execution/code-approval.ts";
export { CodeExecutorAgent } from "./agents/code-executor-agent.ts";
export type { CodeExecutorAgentOptions } from "./agents/code-executor-agent-options.ts";
export type { Handoff } from "./agents/handoff.ts";

export type { SignalOptions } from "./common/signal-option.ts";

export { MaxMessageTermination, type MaxMessageTerminationOptions } from "./conditions/max-message-termination.ts";
export {
  AndTermination,
  BaseTerminationCondition,
  OrTermination,
  type TerminationCondition,
} from "./conditions/termination-condition.ts";
export { TextMentionTermination, type TextMentionTerminationOptions } from "./conditions/text-mention-termination.ts";

export { renderToConsole, type RenderToConsoleOptions } from "./console/render-to-console.ts";

export { BufferedChatCompletionContext } from "./contexts/buffered-chat-completion-context.ts";
export {
  BaseChatCompletionContext,
  type ChatCompletionContext,
  type ChatCompletionContextOptions,
} from "./contexts/chat-completion-context.ts";
export {
  HeadAndTailChatCompletionContext,
  type HeadAndTailChatCompletionContextOptions,
} from "./contexts/head-and-tail-chat-completion-context.ts";
export {
  TokenLimitedChatCompletionContext,
  type TokenLimitedChatCompletionContextOptions,
} from "./contexts/token-limited-chat-completion-context.ts";
export { UnboundedChatCompletionContext } from "./contexts/unbounded-chat-completion-context.ts";

export type {
  AgentEvent,
  AgentMessage,
  CodeExecutionEvent,
  CodeGenerationEvent,
  ModelClientStreamingChunkEvent,
  ThoughtEvent,
  ToolCallExecutionEvent,
  ToolCallRequestEvent,
  UserInputRequestedEvent,
} from "./messages/agent-event.ts";
export type {
  ChatMessage,
  HandoffMessage,
  ImagePart,
  MultiModalMessage,
  StopMessage,
  StructuredMessage,
  TextMessage,
  ToolCallSummaryMessage,
} from "./messages/chat-message.ts";
export {
  codeExecutionEvent,
  codeGenerationEvent,
  handoffMessage,
  multiModalMessage,
  stopMessage,
  streamingChunkEvent,
  structuredMessage,
  textMessage,
  thoughtEvent,
  toolCallExecutionEvent,
  toolCallRequestEvent,
  toolCallSummaryMessage,
  userInputRequestedEvent,
} from "./messages/create-message.ts";
export { type JsonCodeResult, type JsonDisplay, toJsonCodeResult } from "./messages/json-code-result.ts";
export type { MessageBase, MessageOptions } from "./messages/message-base.ts";
export { isAgentEvent, isAgentMessage, isChatMessage } from "./messages/message-guards.ts";
export { messageToText } from "./messages/message-to-text.ts";

export { RoundRobinGroupChat } from "./teams/round-robin-group-chat.ts";
export type { RoundRobinGroupChatOptions } from "./teams/round-robin-group-chat-options.ts";
export type { Team } from "./teams/team.ts";

export { tool, type Tool, type ToolDefinition } from "./tools/tool.ts";
export { ExternalTermination } from "./conditions/external-termination.ts";
export { FunctionCallTermination } from "./conditions/function-call-termination.ts";
export { FunctionalTermination, type TerminationFunc } from "./conditions/functional-termination.ts";
export { HandoffTermination } from "./conditions/handoff-termination.ts";
export { SourceMatchTermination } from "./conditions/source-match-termination.ts";
export { StopMessageTermination } from "./conditions/stop-message-termination.ts";
export { TextMessageTermination } from "./conditions/text-message-termination.ts";
export { TimeoutTermination } from "./conditions/timeout-termination.ts";
export { TokenUsageTermination, type TokenUsageTerminationOptions } from "./conditions/token-usage-termination.ts";
export { type InputFunc, UserProxyAgent, type UserProxyAgentOptions } from "./agents/user-proxy-agent.ts";
export { CodeExecutionTool, type CodeExecutionToolOptions } from "./tools/code-execution-tool.ts";
