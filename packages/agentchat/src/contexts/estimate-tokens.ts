import type { ModelMessage } from "@fenced/core";

const charactersPerToken = 4;
const tokensPerMessage = 4;
const tokensPerImage = 1000;

/** Estimates tokens without the model's tokenizer: one per 4 characters, 1,000 per image. */
export function estimateTokens(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + tokensPerMessage + estimateMessage(message), 0);
}

function estimateMessage(message: ModelMessage): number {
  const { content } = message;
  const thought = message.role === "assistant" ? estimateText(message.thought ?? "") : 0;
  if (typeof content === "string") return thought + estimateText(content);
  return content.reduce((sum, part) => {
    if ("type" in part && part.type === "image") return sum + tokensPerImage;
    return sum + estimateText(JSON.stringify(part));
  }, thought);
}

function estimateText(text: string): number {
  return Math.ceil(text.length / charactersPerToken);
}
