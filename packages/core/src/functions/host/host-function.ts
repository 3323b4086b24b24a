import type { JsonObject } from "../../json-value.ts";
import type { ApproveHostCall, HostCallContext, NeedsApproval } from "./host-call.ts";
import type { CheckedValue } from "./standard-schema.ts";

/** Marks host functions, including those of another installed copy of the package. */
export const hostFunctionMarker: unique symbol = Symbol.for("fenced.host_function");

/** A function of this program that sandboxed code can call. Create it with `hostFunction`. */
export interface HostFunction {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments; `undefined` if the schema's library cannot produce it. */
  readonly inputSchema: JsonObject | undefined;
  /** JSON Schema of the result; `undefined` if it may be any JSON. */
  readonly outputSchema: JsonObject | undefined;
  /** Whether calls need approval, by `approve` or the executor's `approveHostCall`. */
  readonly needsApproval: NeedsApproval;
  /** Decides about each call of this function, after the executor's `approveHostCall` if there is one. */
  readonly approve?: ApproveHostCall;
  /** Validates arguments: returns what to pass to `execute`, or what is wrong. */
  readonly checkInput: (input: unknown) => Promise<CheckedValue>;
  /**
   * Runs the function.
   *
   * @param input - what `checkInput` returned.
   * @throws what the function throws, and InvalidInputError if it returns something that its `output` schema does not
   * allow.
   */
  readonly execute: (input: unknown, context: HostCallContext) => Promise<unknown>;
}

/** True for a function made by `hostFunction`, even by another installed copy of the package. */
export function isHostFunction(value: unknown): value is HostFunction {
  return typeof value === "object" && value !== null && Reflect.get(value, hostFunctionMarker) === true;
}
