import type { JsonObject } from "../../json-value.ts";
import type { HostCallContext } from "./host-call.ts";
import type { CheckedValue } from "./value-schema.ts";

/** What all host functions have, whichever installed copy of the package made them. */
export const hostFunctionMarker: unique symbol = Symbol.for("fenced.host_function");

/** A function of this program that code can call from where it runs. `hostFunction` makes it. */
export interface HostFunction {
  readonly name: string;
  readonly description: string;
  /** The arguments as JSON schema; `undefined` if their library cannot tell. */
  readonly inputSchema: JsonObject | undefined;
  /** The result as JSON schema; `undefined` if it may be any JSON. */
  readonly outputSchema: JsonObject | undefined;
  /** It must not run without the executor's `approveHostCall`. */
  readonly needsApproval: boolean;
  /** Checks arguments: gives what `execute` takes, or what is wrong with them. */
  readonly checkInput: (input: unknown) => Promise<CheckedValue>;
  /**
   * Runs it.
   *
   * @param input - what `checkInput` gave.
   * @throws what the function throws, and InvalidInputError if it returns what its `output` does not allow.
   */
  readonly execute: (input: unknown, context: HostCallContext) => Promise<unknown>;
}

/** True for what `hostFunction` made, whichever installed copy of the package it was. */
export function isHostFunction(value: unknown): value is HostFunction {
  return typeof value === "object" && value !== null && Reflect.get(value, hostFunctionMarker) === true;
}
