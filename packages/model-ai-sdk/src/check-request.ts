import {
  InvalidInputError,
  type CreateOptions,
  type ImageContent,
  type ModelInfo,
  type ModelMessage,
} from "@fenced/core";
import { checkCreateArguments } from "@fenced/core/options";

/**
 * Checks a request.
 *
 * @returns its options.
 * @throws InvalidInputError if it contains something invalid, or something that the model does not support.
 */
export function checkRequest(
  messages: readonly ModelMessage[],
  given: CreateOptions,
  modelInfo: ModelInfo,
): CreateOptions {
  const options = checkCreateArguments(messages, given, "AISDKChatCompletionClient");
  const require = (ability: "vision" | "functionCalling" | "structuredOutput", what: string): void => {
    if (modelInfo[ability]) return;
    throw new InvalidInputError(
      `The request has ${what}, which "${modelInfo.family}" does not support, according to its modelInfo`,
      {
        remedy: `Leave it out, or create the client with { modelInfo: { ${ability}: true } } if the model can.`,
      },
    );
  };
  const images = messages.flatMap(imagesOf);
  if (images.length > 0) require("vision", "an image");
  for (const { url } of images) checkUrl(url);
  if (options.tools !== undefined && options.tools.length > 0) require("functionCalling", "tools");
  if (options.jsonSchema !== undefined) require("structuredOutput", "a JSON schema");
  return options;
}

function imagesOf(message: ModelMessage): ImageContent[] {
  if (message.role !== "user" || typeof message.content === "string") return [];
  return message.content.filter((part) => part.type === "image");
}

function checkUrl(url: string): void {
  if (/^(?:data|https?):/i.test(url) && URL.canParse(url)) return;
  throw new InvalidInputError(`Unsupported image URL: ${JSON.stringify(url.slice(0, 80))}`, {
    remedy: "Use a data: or https: URL; imageFromBytes creates one from a file's bytes.",
  });
}
