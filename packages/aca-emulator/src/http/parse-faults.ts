import { ServiceFailure } from "../service-failure.ts";
import { isObject } from "./api-request.ts";
import type { Fault } from "./fault.ts";

type Check = (value: unknown) => boolean;

const isNumber: Check = (value) => typeof value === "number" && value >= 0;
const isBoolean: Check = (value) => typeof value === "boolean";
const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);

const aim = {
  on: oneOf("executions", "poll", "files", "session", "metadata"),
  rate: isNumber,
  skip: isNumber,
  times: isNumber,
};

/** What may stand in a fault of each kind. */
const kinds: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  latency: { ...aim, milliseconds: isNumber },
  "too-many-requests": { ...aim, retryAfterSeconds: isNumber },
  "server-error": { ...aim, status: oneOf(500, 502, 503, 504), afterwards: isBoolean },
  drop: { ...aim, afterwards: isBoolean },
  "expired-token": aim,
  forbidden: aim,
  "expired-session": aim,
};

/** @throws ServiceFailure if the value is not a list of faults. */
export function parseFaults(value: unknown): Fault[] {
  if (!Array.isArray(value)) throw new ServiceFailure(400, "InvalidFault", "The faults are not a list.");
  return value.map((each: unknown) => {
    if (isFault(each)) return each;
    throw new ServiceFailure(400, "InvalidFault", `${JSON.stringify(each)} is not a fault.`);
  });
}

function isFault(value: unknown): value is Fault {
  if (!isObject(value) || typeof value["kind"] !== "string") return false;
  const checks = Object.hasOwn(kinds, value["kind"]) ? kinds[value["kind"]] : undefined;
  if (!checks || (value["kind"] === "latency" && value["milliseconds"] === undefined)) return false;
  return Object.entries(value).every(([name, each]) => name === "kind" || checks[name]?.(each) === true);
}
