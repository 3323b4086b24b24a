import { cpuUsage } from "node:process";
import { createContext, Script } from "node:vm";

const script = new Script("action()");
let context: { action?: () => void } | undefined;

/** On a machine that is too busy even for these, the function counts as interrupted. */
const mostTries = 20;

/**
 * Runs a function to its end, or interrupts it: also in the middle of a regular expression that backtracks, which no
 * timer could do. Takes a tenth of a millisecond.
 *
 * @param limitMs - processor time that it may take, in milliseconds.
 * @param action - called again if it was interrupted because other programs had the processor.
 * @returns what it returned; `undefined` if it was interrupted.
 */
export function finishWithin<Result>(limitMs: number, action: () => Result): Result | undefined {
  const before = cpuUsage();
  for (let tries = 1; ; tries += 1) {
    const done = finishOnce(limitMs, action);
    if (done) return done.result;
    const { user, system } = cpuUsage(before);
    if ((user + system) / 1000 >= limitMs / 2 || tries === mostTries) return undefined;
  }
}

function finishOnce<Result>(limitMs: number, action: () => Result): { readonly result: Result } | undefined {
  let done: { readonly result: Result } | undefined;
  const shared = (context ??= createContext({}));
  shared.action = () => {
    done = { result: action() };
  };
  try {
    script.runInContext(shared, { timeout: Math.ceil(limitMs) });
    return done;
  } catch (error) {
    const code: unknown = typeof error === "object" && error !== null ? Reflect.get(error, "code") : undefined;
    if (code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return undefined;
    throw error;
  } finally {
    delete shared.action;
  }
}
