import { EventSchemas } from "@ag-ui/core/schemas";
import { readEventStream } from "@fenced/core/web";
import { DefaultChatTransport, readUIMessageStream, type UIMessage } from "ai";

/** Asks like `useChat`; returns the message that it shows. */
export async function askAsUseChat(api: string, question: string): Promise<UIMessage | undefined> {
  const asked: UIMessage = { id: "1", role: "user", parts: [{ type: "text", text: question }] };
  const stream = await new DefaultChatTransport({ api }).sendMessages({
    chatId: "chat",
    messages: [asked],
    trigger: "submit-message",
    messageId: undefined,
    abortSignal: undefined,
  });
  let shown: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream })) shown = message;
  return shown;
}

/** Asks like an AG-UI client; returns the events, validated with the protocol's own schemas. */
export async function askAsAgUi(url: string, question: string): Promise<readonly { readonly type: string }[]> {
  const input = { threadId: "chat", runId: "1", messages: [{ id: "1", role: "user", content: question }] };
  const response = await fetch(url, { method: "POST", body: JSON.stringify(input) });
  const events: { readonly type: string }[] = [];
  for await (const event of readEventStream(response)) events.push(EventSchemas.parse(event));
  return events;
}
