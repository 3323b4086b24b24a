import { FencedError, InvalidInputError, ModelClientError } from "@fenced/core";
import {
  APICallError,
  DownloadError,
  InvalidResponseDataError,
  JSONParseError,
  LoadAPIKeyError,
  MissingToolResultsError,
  NoSuchModelError,
  RetryError,
  TypeValidationError,
} from "ai";

/** Explains what went wrong and what to do about it. Neither the message nor the cause contains request headers or keys. */
export function toModelClientError(thrown: unknown, modelId: string): FencedError {
  if (FencedError.isInstance(thrown)) return thrown;
  const error = RetryError.isInstance(thrown) ? thrown.lastError : thrown;
  const model = `Model "${modelId}"`;
  const isGatewayKey = error instanceof Error && error.name === "GatewayAuthenticationError";
  if (LoadAPIKeyError.isInstance(error) || isGatewayKey) return noKey(model, error);
  if (NoSuchModelError.isInstance(error)) return unknownModel(model, textOf(error));
  if (MissingToolResultsError.isInstance(error)) return missingResults(error);
  if (DownloadError.isInstance(error)) return noDownload(model, error);
  if (isMalformed(error)) return malformed(model, error);
  if (APICallError.isInstance(error)) return failedCall(model, error);
  return dropped(model, error);
}

function failedCall(model: string, error: APICallError): ModelClientError {
  const status = error.statusCode;
  const said = `HTTP ${status}: ${textOf(error)}`;
  // The error's own cause has neither headers nor request; the error itself contains the service's whole answer.
  const cause = causeOf(error.cause);
  if (status === undefined) {
    return new ModelClientError(`${model} cannot be reached at ${originOf(error.url)}: ${textOf(error)}`, {
      remedy: "Check the base URL, and that the service is running and can be reached from here.",
      ...cause,
    });
  }
  if (isMalformed(error.cause)) return malformed(model, error.cause);
  // The service had agreed; the connection broke before the answer was complete.
  if (status < 400) return dropped(model, error.cause ?? error);
  if (status === 401 || status === 403) {
    // Leaves out the service's text: some services repeat the key in it.
    return new ModelClientError(`${model} refused the API key (HTTP ${status})`, {
      remedy: "Check that the key is right, not expired, and allowed to use this model.",
    });
  }
  if (status === 404) return unknownModel(model, said);
  if (status === 429) {
    return new ModelClientError(`${model} is over its rate limit or quota (${said})`, {
      remedy: "Wait and try again, raise maxRetries, or check the account's quota.",
    });
  }
  if (/context|too long|too many (?:input )?tokens|max(?:imum)?[ _]tokens|prompt is too/i.test(said) && status < 500) {
    return new ModelClientError(`${model} cannot handle a conversation of this length (${said})`, {
      remedy:
        "Shorten the conversation, e.g. with a buffered model context, or use a model with a larger context window.",
    });
  }
  return status >= 500
    ? new ModelClientError(`${model} failed on the service's side (${said})`, { remedy: "Try again later." })
    : new ModelClientError(`${model} refused the request (${said})`, {
        remedy: "Check that the model supports what the request uses: images, tools, a JSON schema, its settings.",
      });
}

function noKey(model: string, cause: unknown): ModelClientError {
  return new ModelClientError(`${model} has no API key: ${textOf(cause)}`, {
    remedy: "Pass the key to the provider as an option, or set its environment variable.",
  });
}

function missingResults(cause: Error): InvalidInputError {
  return new InvalidInputError(`The conversation is incomplete: ${textOf(cause)}`, {
    remedy: "After each assistant message with tool calls, add a tool message with the results.",
    cause,
  });
}

function noDownload(model: string, cause: Error): ModelClientError {
  return new ModelClientError(`${model} needs the bytes of images, but one could not be fetched`, {
    remedy: "Check that its address can be reached from here, or pass the bytes with imageFromBytes.",
    cause,
  });
}

function unknownModel(model: string, said: string): ModelClientError {
  return new ModelClientError(`${model} is unknown to the service (${said})`, {
    remedy: "Check the model's id and the base URL.",
  });
}

function malformed(model: string, cause: unknown): ModelClientError {
  return new ModelClientError(`${model} sent an answer that cannot be understood: ${textOf(cause)}`, {
    remedy: "Check that the base URL belongs to a service of this provider, and try again.",
    ...causeOf(cause),
  });
}

function dropped(model: string, cause: unknown): ModelClientError {
  return new ModelClientError(`${model} broke off its answer: ${textOf(cause)}`, {
    remedy: "Try again; if the error persists, check the connection and the service's logs.",
    ...causeOf(cause),
  });
}

function isMalformed(error: unknown): boolean {
  return (
    JSONParseError.isInstance(error) ||
    TypeValidationError.isInstance(error) ||
    InvalidResponseDataError.isInstance(error)
  );
}

/** The error as a cause, unless its text contains a key: everything that prints errors would show it. */
function causeOf(error: unknown): { readonly cause?: Error } {
  return error instanceof Error && !textOf(error).includes("[key]") ? { cause: error } : {};
}

/** An error's text on one line, without colours and anything that looks like a key. */
function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message : messageIn(error);
  return (
    text
      // oxlint-disable-next-line no-control-regex -- this is what it removes
      .replaceAll(/\u001B\[\d+m/g, "")
      .replaceAll(/\b(?:Bearer\s+|(?:sk|pk|key|xai|gsk|AIza)[-_]?)[\w*.-]{8,}/g, "[key]")
      .replaceAll(/\s+/g, " ")
      .trim()
      .slice(0, 500)
  );
}

function messageIn(value: unknown): string {
  if (typeof value === "object" && value !== null && "message" in value) return String(value.message);
  return typeof value === "string" ? value : JSON.stringify(value);
}

// A query may contain a key.
function originOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
