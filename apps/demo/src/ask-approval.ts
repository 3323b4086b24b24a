import { terminalApproval, type ApprovalFunc } from "@fenced/agentchat";
import { DemoError } from "./demo-error.ts";

/** @throws DemoError if there is no terminal to ask in. */
export function assertTerminal(): void {
  if (process.stdin.isTTY && process.stdout.isTTY) return;
  throw new DemoError(
    "--approve asks in the terminal, but there is no terminal here. Run the demo in a terminal, or add --web.",
    2,
  );
}

/**
 * Asks in the terminal whether the code that the chat shows may run.
 *
 * @param replayed - true if the coder is a recording: it cannot react, so a refusal ends the chat.
 */
export function askApproval(replayed: boolean): ApprovalFunc {
  const ask = terminalApproval({ showCode: false });
  return async (request, options) => {
    const response = await ask(request, options);
    if (!replayed || response?.approved === true) return response;
    throw new DemoError("Stopped: you refused the code, and a recorded coder cannot write anything else.", 1);
  };
}
