import { createInterface } from "node:readline/promises";
import type { ApprovalFunc } from "@fenced/agentchat";
import { DemoError } from "./demo-error.ts";

/** @throws DemoError if there is nobody to ask. */
export function assertTerminal(): void {
  if (process.stdin.isTTY && process.stdout.isTTY) return;
  throw new DemoError("--approve asks in the terminal before each run, and there is no terminal here.", 2);
}

/**
 * Asks in the terminal whether code may run.
 *
 * @param replayed - the coder is a recording: it cannot take a no for an answer, so one ends the chat.
 */
export function askApproval(replayed: boolean): ApprovalFunc {
  return async ({ blocks }, { signal }) => {
    const languages = [...new Set(blocks.map(({ language }) => language))].join(" and ");
    const answer = await ask(`\nRun this ${languages} code? [y/N] `, signal);
    if (/^y(es)?$/i.test(answer.trim())) return { approved: true, reason: "The user allowed it." };
    if (replayed) throw new DemoError("Stopped: you refused the code, and a recorded coder cannot write another.", 1);
    return { approved: false, reason: "The user refused to run this code. Ask what they want, or try another way." };
  };
}

/** @returns the line that was typed; an empty one after Ctrl+D. */
async function ask(question: string, signal: AbortSignal | undefined): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // Ctrl+C while a question stands comes as an event of the terminal, not as a signal.
  terminal.on("SIGINT", () => process.emit("SIGINT", "SIGINT"));
  const ended = new AbortController();
  terminal.once("close", () => ended.abort());
  try {
    return await terminal.question(question, { signal: AbortSignal.any([ended.signal, ...(signal ? [signal] : [])]) });
  } catch {
    signal?.throwIfAborted();
    return "";
  } finally {
    terminal.close();
  }
}
