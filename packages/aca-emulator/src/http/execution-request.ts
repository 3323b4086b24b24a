import { randomUUID } from "node:crypto";
import { ServiceFailure } from "../service-failure.ts";
import type { ExecutionRequest } from "../sessions/session.ts";
import { isObject, type ApiRequest, type EmulatedPool } from "./api-request.ts";

type Body = Readonly<Record<string, unknown>>;

const defaultTimeoutSeconds = 60;
const longestAsynchronousSeconds = 86_400;
const defaultOutputLimit = 4096;

/** Reads the body of `POST executions`. @throws ServiceFailure if the API does not allow it. */
export function readExecution(request: ApiRequest, given: Body, pool: EmulatedPool): ExecutionRequest {
  const body = unwrapped(given, pool.wrappedBodies);
  const executionType = body["executionType"] ?? "Synchronous";
  if (executionType !== "Synchronous" && executionType !== "Asynchronous") {
    throw invalid("executionType", "must be Synchronous or Asynchronous");
  }
  const operation = request.message.headers["operation-id"];
  return {
    id: typeof operation === "string" ? operation : randomUUID(),
    executionType,
    code: pool.poolType === "Shell" ? shellCommand(body) : inlineCode(body),
    timeout: timeout(body, executionType === "Synchronous" ? pool.syncLimitSeconds : longestAsynchronousSeconds),
    outputLimit: Math.min(pool.outputLimit, whole(body, "outputStreamsMaxLength") ?? defaultOutputLimit),
    emptyKernel: body["useEmptyKernel"] === true,
  };
}

/** Reads the body of the older API's `POST code/execute`. @throws ServiceFailure as `readExecution`. */
export function readOlderExecution(given: Body, pool: EmulatedPool): ExecutionRequest {
  const body = given["properties"];
  if (!isObject(body)) throw new ServiceFailure(400, "SessionPropertiesMissing", "The body has no properties.");
  return {
    id: randomUUID(),
    executionType: "Synchronous",
    code: inlineCode(body),
    timeout: timeout(body, pool.syncLimitSeconds),
    outputLimit: pool.outputLimit,
    emptyKernel: false,
  };
}

function unwrapped(body: Body, wrapped: boolean): Body {
  if (!wrapped) return body;
  const properties = body["properties"];
  if (isObject(properties)) return properties;
  throw new ServiceFailure(400, "SessionPropertiesMissing", "The body has no properties.");
}

function inlineCode(body: Body): string {
  const type = body["codeInputType"];
  if (typeof type !== "string" || type.toLowerCase() !== "inline") throw invalid("codeInputType", "must be Inline");
  const code = body["code"];
  if (typeof code !== "string") throw invalid("code", "must be a string");
  return code;
}

function shellCommand(body: Body): string {
  const command = body["shellCommand"];
  if (typeof command !== "string") throw invalid("shellCommand", "must be a string");
  return command;
}

function timeout(body: Body, limit: number): number {
  const seconds = whole(body, "timeoutInSeconds") ?? Math.min(defaultTimeoutSeconds, limit);
  if (seconds > limit) throw invalid("timeoutInSeconds", `must be at most ${limit}`);
  return seconds;
}

function whole(body: Body, name: string): number | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
  throw invalid(name, "must be a positive whole number");
}

function invalid(name: string, problem: string): ServiceFailure {
  return new ServiceFailure(400, "InvalidRequestBody", `${name} ${problem}.`);
}
