import { ModelClientError, parseJson, type FinishReason } from "@fenced/core";

/** @throws ModelClientError if the answer to a request with a JSON schema is not JSON. */
export function checkJson(text: string, finishReason: FinishReason, modelId: string): void {
  try {
    parseJson(text);
  } catch (cause) {
    const cut = finishReason === "length";
    const problem = `Model "${modelId}" was asked for JSON but sent ${cut ? "only part of it" : "something else"}`;
    throw new ModelClientError(`${problem}: ${JSON.stringify(text.slice(0, 80))}`, {
      remedy: cut ? "Raise maxOutputTokens." : "Try again, or use a model with structured output.",
      cause,
    });
  }
}
