import {
  type AgentMessage,
  BaseChatAgent,
  type ChatMessage,
  messageToText,
  type AgentResponse,
  RoundRobinGroupChat,
  textMessage,
} from "../../src/index.ts";

/** Says its name and how many messages it was given. */
export class Counter extends BaseChatAgent {
  readonly received: (readonly ChatMessage[])[] = [];
  fail: Error | undefined;
  resets = 0;

  constructor(name: string) {
    super({ name, description: "counts" });
  }

  override async *onMessagesStream(messages: readonly ChatMessage[]): AsyncGenerator<AgentResponse> {
    if (this.fail !== undefined) throw this.fail;
    this.received.push(messages);
    const content = `${this.name} ${messages.length}`;
    yield { chatMessage: textMessage({ source: this.name, content }), innerMessages: [] };
  }

  override async reset(): Promise<void> {
    this.resets++;
  }
}

/** The messages as text. */
export function texts(messages: readonly AgentMessage[]): string[] {
  return messages.map(messageToText);
}

/** A team of two counters. */
export function counters(maxTurns?: number): { team: RoundRobinGroupChat; a: Counter; b: Counter } {
  const a = new Counter("a");
  const b = new Counter("b");
  return { team: new RoundRobinGroupChat({ participants: [a, b], maxTurns }), a, b };
}
