import { context } from "@opentelemetry/api";

/**
 * A function that runs in the context that is active now, whoever calls it: for what an event, such as an abort, sets
 * off in the name of an operation.
 */
export function inThisContext<Args extends unknown[], Result>(
  action: (...args: Args) => Result,
): (...args: Args) => Result {
  return context.bind(context.active(), action);
}
