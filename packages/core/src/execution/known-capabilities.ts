import { InvalidInputError } from "../errors/invalid-input-error.ts";
import type { CodeExecutor } from "./code-executor.ts";
import type { ExecutorCapabilities } from "./executor-capabilities.ts";

/** The name in the error of an executor that is asked for its capabilities too early. */
const option = "capabilities";

/**
 * The executor's capabilities; `undefined` if it cannot know them before it has started, as those of
 * `ExecutorSessions`, whose executor does not exist yet. A tool that needs them then calls `start()`.
 */
export function knownCapabilities(executor: CodeExecutor): ExecutorCapabilities | undefined {
  try {
    return executor.capabilities;
  } catch (error) {
    if (InvalidInputError.isInstance(error) && error.option === option) return undefined;
    throw error;
  }
}

/**
 * The error of a `capabilities` getter before the executor knows them: an empty or a guessed answer would be wrong.
 *
 * @param what - names the executor at the start of a sentence: `A session of ExecutorSessions`.
 */
export function capabilitiesUnknown(what: string): InvalidInputError {
  return new InvalidInputError(`${what} does not know what it can do before it has started`, {
    remedy: "Call `await executor.start()` first. Tools, agents and servers of Fenced do that by themselves.",
    option,
  });
}
