import { type ApproveHostCall, describeHostCall, type HostCall, type HostCallApproval } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { askOnTerminal } from "../common/ask-on-terminal.ts";
import { assertTerminal } from "./terminal-approval.ts";

/**
 * Makes an `approveHostCall` that shows each call of a host function in the terminal and asks a person. Meanwhile the
 * program waits and its time limit keeps running: give the executor a long `timeoutMs`. Asks about concurrent calls one
 * after another.
 *
 * `y` and `yes` approve the call; `a` and `all` approve it and all later calls of that function. Everything else
 * refuses: Enter, Ctrl+D, and any other text, which the program gets as the reason. Ctrl+C raises SIGINT as usual. Keys
 * pressed before the question appears do not count; after a program withdrew a question, the next one is asked once no
 * key has been pressed for a second.
 *
 * @example
 * ```ts
 * const codeExecutor = new DockerCommandLineCodeExecutor({ functions, approveHostCall: terminalHostCallApproval() });
 * const runner = new CodeExecutorAgent({ name: "runner", codeExecutor, approvalFunc: terminalApproval() });
 * ```
 * @throws InvalidInputError if standard input or output is not a terminal.
 */
export function terminalHostCallApproval(): ApproveHostCall {
  assertTerminal("terminalHostCallApproval", "an approveHostCall");
  const allowed = new Set<string>();
  let turn: Promise<unknown> = Promise.resolve();
  return async (call) => {
    // An earlier answer may cover all calls.
    const asked = turn.then(() => ask(call, allowed));
    turn = asked.catch(() => {});
    return untilAborted(asked, call.signal);
  };
}

async function ask(call: HostCall, allowed: Set<string>): Promise<HostCallApproval> {
  const { name, signal } = call;
  signal.throwIfAborted();
  if (allowed.has(name)) return { approved: true };
  const question = `\nCall ${describeHostCall(call)}? [y/N, a for all calls of ${name}, or what to change] `;
  const answer = (await askOnTerminal(question, { signal, fresh: true }))?.trim() ?? "";
  if (/^a(ll)?$/i.test(answer)) allowed.add(name);
  if (/^(y(es)?|a(ll)?)$/i.test(answer)) return { approved: true };
  const said = /^(no?)?$/i.test(answer) ? "Ask what they want, or try another way." : `They said: ${answer}`;
  return { approved: false, reason: `The user refused this call. ${said}` };
}
