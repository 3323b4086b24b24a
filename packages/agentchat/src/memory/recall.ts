import { InvalidInputError, type ModelMessage } from "@fenced/core";
import * as z from "zod";
import { abortable } from "../common/abortable.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { messageToText } from "../messages/message-to-text.ts";
import { type Memory, type MemoryContent, memoryContentSchema } from "./memory.ts";

// Longer than a database needs to notice an abort.
const graceMs = 1000;
const contents = z.array(memoryContentSchema);

/**
 * Asks memories about new messages, all at the same time; returns what they know, in the order of the memories.
 *
 * @throws InvalidInputError if one returns something else than a list of contents.
 */
export async function recall(
  memories: readonly Memory[],
  messages: readonly ChatMessage[],
  { signal }: SignalOptions,
): Promise<MemoryContent[]> {
  const text = messages.at(-1);
  const asked = memories.map(async (memory) => {
    const given = await memory.query(text ? messageToText(text) : "", { signal });
    const parsed = contents.safeParse(given);
    if (parsed.success) return parsed.data;
    throw new InvalidInputError(
      `The memory "${memory.name}" returned no list of contents: ${z.prettifyError(parsed.error)}`,
      {
        remedy: "Make its query() return [{ content }].",
      },
    );
  });
  return (await abortable(Promise.all(asked), { signal, graceMs })).flat();
}

/** What memories know, as a message for the model; `undefined` if they know nothing. */
export function memoryMessage(known: readonly MemoryContent[]): ModelMessage | undefined {
  if (known.length === 0) return undefined;
  const lines = known.map(({ content }, index) => `${index + 1}. ${content}`);
  return { role: "system", content: ["What you know besides the conversation:", ...lines].join("\n") };
}
