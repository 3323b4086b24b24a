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

/** A model's request to call a tool. */
export interface ToolCall {
  /** Links the call to its `ToolResult`. */
  readonly id: string;
  /** The tool's name. */
  readonly name: string;
  /** The arguments as the model wrote them: JSON text, possibly malformed. */
  readonly arguments: string;
}

/** The result of a tool call. */
export interface ToolResult {
  /** The `id` of the call. */
  readonly callId: string;
  /** The tool's name. */
  readonly name: string;
  /** The tool's result as text, or the error message. */
  readonly content: string;
  /** The call failed. */
  readonly isError: boolean;
}

/** Instructions that precede the conversation. */
export interface SystemMessage {
  readonly role: "system";
  readonly content: string;
}

/** What a person, or another agent, says to the model. */
export interface UserMessage {
  readonly role: "user";
  readonly content: string | readonly (TextContent | ImageContent)[];
  /** The name of the agent or person who said it. Clients tell the model if several speak to it. */
  readonly source?: string;
}

/** What the model said before. */
export interface AssistantMessage {
  readonly role: "assistant";
  /** Its text, or the tools it wanted to call. */
  readonly content: string | readonly ToolCall[];
  /** Its reasoning, or the text it wrote next to tool calls. */
  readonly thought?: string;
  /** The part of `thought` next to tool calls that is reasoning, not text. Some services demand it back. */
  readonly reasoning?: string;
  /** The name of the agent that the model speaks for. */
  readonly source?: string;
}

/** The results of the tool calls in the assistant's last message. */
export interface ToolResultMessage {
  readonly role: "tool";
  readonly content: readonly ToolResult[];
}

/** One message of a conversation with a model: plain JSON, distinguished by `role`. */
export type ModelMessage = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage;
