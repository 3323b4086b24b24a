export { AssistantAgent } from "./agents/assistant-agent.ts";
export type { AssistantAgentOptions } from "./agents/assistant-agent-options.ts";
export { BaseChatAgent, type BaseChatAgentOptions } from "./agents/base-chat-agent.ts";
export {
  type ChatAgent,
  isResponse,
  isTaskResult,
  type AgentResponse,
  type RunOptions,
  type Task,
  type TaskResult,
  type WaitingFor,
} from "./agents/chat-agent.ts";
export type { ApprovalFunc, ApprovalRequest, ApprovalResponse } from "./execution/code-approval.ts";
export { terminalApproval, type TerminalApprovalOptions } from "./execution/terminal-approval.ts";
export { terminalHostCallApproval } from "./execution/terminal-host-call-approval.ts";
export {
  type PendingAnswer,
  type PendingApproval,
  PendingApprovals,
  type PendingApprovalsOptions,
} from "./execution/pending-approvals.ts";
export { CodeExecutorAgent } from "./agents/code-executor-agent.ts";
export type { CodeExecutorAgentOptions } from "./agents/code-executor-agent-options.ts";
export type { Handoff } from "./agents/handoff.ts";
export {
  MessageFilterAgent,
  type MessageFilterAgentOptions,
  type PerSourceFilter,
} from "./agents/message-filter-agent.ts";
export { WaitingForPersonError } from "./agents/waiting-for-person-error.ts";

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
  CodeOutputEvent,
  MemoryQueryEvent,
  ModelClientStreamingChunkEvent,
  SelectorEvent,
  SelectSpeakerEvent,
  ThoughtEvent,
  ToolCallExecutionEvent,
  ToolCallRequestEvent,
  CodeApprovalRequestEvent,
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
  codeOutputEvent,
  handoffMessage,
  memoryQueryEvent,
  multiModalMessage,
  selectorEvent,
  selectSpeakerEvent,
  stopMessage,
  streamingChunkEvent,
  structuredMessage,
  textMessage,
  thoughtEvent,
  toolCallExecutionEvent,
  toolCallRequestEvent,
  toolCallSummaryMessage,
  codeApprovalRequestEvent,
  userInputRequestedEvent,
} from "./messages/create-message.ts";
export type { MessageBase, MessageOptions } from "./messages/message-base.ts";
export { isAgentEvent, isAgentMessage, isChatMessage } from "./messages/message-guards.ts";
export { messageToText } from "./messages/message-to-text.ts";

export { ListMemory, type ListMemoryOptions } from "./memory/list-memory.ts";
export type { Memory, MemoryContent } from "./memory/memory.ts";

export { BaseGroupChat, type NextTurn, type Speakers } from "./teams/base-group-chat.ts";
export type { GroupChatOptions } from "./teams/group-chat-options.ts";
export type { Activation, DiGraph, DiGraphEdge, DiGraphNode, EdgeCondition } from "./teams/graph/di-graph.ts";
export { type AddEdgeOptions, type AddNodeOptions, DiGraphBuilder } from "./teams/graph/di-graph-builder.ts";
export { GraphFlow, type GraphFlowOptions } from "./teams/graph/graph-flow.ts";
export { MagenticOneGroupChat } from "./teams/magentic/magentic-one-group-chat.ts";
export type { MagenticOneGroupChatOptions } from "./teams/magentic/magentic-one-group-chat-options.ts";
export { RoundRobinGroupChat, type RoundRobinGroupChatOptions } from "./teams/round-robin-group-chat.ts";
export { SelectorGroupChat } from "./teams/selector-group-chat.ts";
export type { CandidateFunc, SelectorFunc, SelectorGroupChatOptions } from "./teams/selector-group-chat-options.ts";
export { Swarm, type SwarmOptions } from "./teams/swarm.ts";
export type { Participant, Team } from "./teams/team.ts";

export {
  type McpClient,
  type McpRequestOptions,
  mcpTools,
  type McpTools,
  type McpToolsOptions,
} from "./tools/mcp-tools.ts";
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
export { CodeExecutorTool, type CodeExecutorToolOptions } from "./tools/code-executor-tool.ts";
export { AgentTool, type AgentToolOptions } from "./tools/agent-tool.ts";
export { TeamTool, type TeamToolOptions } from "./tools/team-tool.ts";
export { TaskRunnerTool, type TaskRunner, type TaskRunnerToolOptions } from "./tools/task-runner-tool.ts";
export {
  type AgUiEvent,
  type AgUiInterrupt,
  type AgUiOptions,
  type AgUiOutcome,
  toAgUiEvents,
} from "./streams/to-ag-ui-events.ts";
export type { ChatItem, ChatStreamOptions } from "./streams/chat-parts.ts";
export {
  toUIMessageStream,
  type UIMessageStreamChunk,
  type UIMessageStreamOptions,
} from "./streams/to-ui-message-stream.ts";
