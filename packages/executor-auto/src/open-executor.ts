import { BackendUnavailableError, type CodeExecutor, InvalidInputError } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import { z } from "zod";
import { assertAble } from "./assert-able.ts";
import { explainChoice, nothingOpens, whatIsWrong } from "./explain.ts";
import type { FencedExecutor, FenceName, PassedOverFence } from "./fenced-executor.ts";
import { type Fence, fences } from "./fences.ts";
import { openExecutorOptions, type OpenExecutorOptions } from "./open-executor-options.ts";
import { endExecutor, StartClock } from "./start-clock.ts";

/** Options that only a container uses. */
const containerOptions = ["image", "docker", "pull", "onPullProgress", "pullTimeoutMs"] as const;

const fenceArgument = z.object({ fence: z.enum(["auto", "docker", "os-sandbox", "wasm"]) });

/**
 * Opens a fence for code, and starts the executor behind it. `"auto"` opens the strongest one that this machine has: a
 * Docker or Podman container, otherwise an OS sandbox, otherwise an interpreter in WebAssembly;
 * never an unfenced executor. Containers run in the strongest OCI runtime that is registered with the daemon, such as gVisor;
 * `capabilities.kernel` tells.
 *
 * Each executor is a separate package; one that is not installed is passed over. A fence that is passed over leaves
 * nothing behind.
 *
 * @param fence - `"auto"`, or the name of the only fence to try.
 * @returns a started executor, which you stop. Its `fence` says what was chosen, and why.
 * @throws InvalidInputError if an option is unknown or wrong, or if it is only for containers and you name another
 * fence.
 * @throws BackendUnavailableError if no fence could be opened; the message lists what is wrong with each and what to
 * do.
 * @throws `options.signal.reason` if the signal was aborted.
 *
 * @example
 * await using executor = await openExecutor("auto", { timeoutMs: 10_000 });
 * console.log(executor.fence.reason); // The code runs in a Docker or Podman container.
 * const result = await executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]);
 */
export async function openExecutor(
  fence: FenceName | "auto",
  options: OpenExecutorOptions = {},
): Promise<FencedExecutor> {
  const { fence: wanted } = checkOptions(fenceArgument, { fence }, "openExecutor");
  const checked = checkOptions(openExecutorOptions, options, "openExecutor");
  refuseIgnored(wanted, checked);
  const passedOver: PassedOverFence[] = [];
  for (const candidate of fences.filter(({ name }) => wanted === "auto" || wanted === name)) {
    checked.signal?.throwIfAborted();
    const attempt = await tryFence(candidate, checked);
    if ("executor" in attempt) {
      const { name } = candidate;
      const reason = explainChoice(candidate, attempt.executor.capabilities, passedOver);
      return Object.assign(attempt.executor, { fence: { name, reason, passedOver }, dumpComponent: attempt.dump });
    }
    if (wanted !== "auto") throw attempt.error;
    passedOver.push({ name: candidate.name, ...whatIsWrong(attempt.error), error: attempt.error });
  }
  throw nothingOpens(passedOver);
}

function refuseIgnored(wanted: FenceName | "auto", options: OpenExecutorOptions): void {
  if (wanted === "auto" || wanted === "docker") return;
  const name = containerOptions.find((option) => options[option] !== undefined);
  if (name === undefined) return;
  throw new InvalidInputError(`\`${name}\` is an option for containers, but "${wanted}" does not use one`, {
    remedy: `Leave \`${name}\` out, or open "docker" or "auto".`,
  });
}

/** The outcome of trying one fence. */
type Attempt =
  | { readonly executor: CodeExecutor; readonly dump: CodeExecutor["dumpComponent"] }
  | { readonly error: unknown };

/**
 * Starts the executor of one fence.
 *
 * @throws InvalidInputError for a mistake of the caller, which no other fence would fix; the signal's reason if it
 * aborts.
 */
async function tryFence(fence: Fence, options: OpenExecutorOptions): Promise<Attempt> {
  const clock = new StartClock(fence, options);
  let executor: CodeExecutor;
  let asked: CodeExecutor;
  try {
    executor = await fence.make({ ...options, onPullProgress: clock.onPullProgress });
    // The clock's own callback is no setting of the caller's: a component is dumped as it was asked for.
    asked = await fence.make(options);
  } catch (error) {
    if (BackendUnavailableError.isInstance(error)) return { error };
    throw error;
  }
  try {
    // Before the start, this checks what the executor is designed for; after it, what is available.
    assertAble(executor, fence, options);
    await clock.start(executor);
    assertAble(executor, fence, options);
    options.signal?.throwIfAborted();
    return { executor, dump: () => asked.dumpComponent() };
  } catch (error) {
    await endExecutor(executor);
    options.signal?.throwIfAborted();
    return { error };
  }
}
