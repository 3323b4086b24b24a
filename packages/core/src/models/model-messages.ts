/** Text in a message. */
export interface TextContent {
  readonly type: "text";
  readonly text: string;
}

/** An image in a message. */
export interface ImageContent {
  readonly type: "image";
  /** A `data:` URL with the image's bytes in base64 (see `imageFromBytes`), or an `https:` URL. */
  readonly url: string;
}

/** A model's wish that a tool be called. */
export interface ToolCall {
  /** Ties the call to its `ToolResult`. */
  readonly id: string;
  /** The tool's name. */
  readonly name: string;
  /** The arguments as the model wrote them: JSON text, perhaps malformed. */
  readonly arguments: string;
}

/** What a tool call came to. */
export interface ToolResult {
  /** The `id` of the call. */
  readonly callId: string;
  /** The tool's name. */
  readonly name: string;
  /** The tool's answer as text, or the error's message. */
  readonly content: string;
  /** The call failed. */
  readonly isError: boolean;
}

/** Instructions that stand above the conversation. */
export interface SystemMessage {
  readonly role: "system";
  readonly content: string;
}

/** What a person, or another agent, says to the model. */
export interface UserMessage {
  readonly role: "user";
  readonly content: string | readonly (TextContent | ImageContent)[];
  /** The name of the agent or person that said it. */
  readonly source?: string;
}

/** What the model said before. */
export interface AssistantMessage {
  readonly role: "assistant";
  /** Its text, or the tools that it wanted called. */
  readonly content: string | readonly ToolCall[];
  /** Its reasoning, or the text that it wrote next to tool calls. */
  readonly thought?: string;
  /** The name of the agent that the model speaks for. */
  readonly source?: string;
}

/** What the tools answered to the calls of the assistant's last message. */
export interface ToolResultMessage {
  readonly role: "tool";
  readonly content: readonly ToolResult[];
}

/** One message of a conversation with a model: plain JSON, told apart by `role`. */
export type ModelMessage = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage;
