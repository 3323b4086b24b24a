import { type CodeBlock, InvalidInputError, sanitizeTerminalText, showHidden } from "@fenced/core";
import { checkOptions, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import { askOnTerminal } from "../common/ask-on-terminal.ts";
import type { ApprovalFunc, ApprovalRequest, ApprovalResponse } from "./code-approval.ts";

/** Options of `terminalApproval`. */
export interface TerminalApprovalOptions {
  /**
   * Print the code above the question. Default: true. Set it to false if the code is already on the screen, for example
   * because `renderToConsole` shows the message that contains it. Code with hidden characters is always printed.
   */
  readonly showCode?: boolean | undefined;
}

const schema: z.ZodType<TerminalApprovalOptions> = optionsSchema({
  showCode: z.boolean().exactOptional(),
} satisfies OptionSchemas<TerminalApprovalOptions>);

/**
 * Makes an `approvalFunc` that shows the code in the terminal and asks a person before it runs.
 *
 * `y` and `yes` approve. Everything else refuses: Enter, Ctrl+D, and any other text, which the model gets as the
 * reason. Ctrl+C raises SIGINT as usual. Keys pressed before the question appears do not count.
 *
 * @example
 * ```ts
 * const runner = new CodeExecutorAgent({ name: "runner", codeExecutor, approvalFunc: terminalApproval() });
 * ```
 * @throws InvalidInputError if an option is unknown or wrong, or if standard input or output is not a terminal: the
 * content of a pipe is not a person's answer.
 */
export function terminalApproval(options: TerminalApprovalOptions = {}): ApprovalFunc {
  const { showCode = true } = checkOptions(schema, options, "terminalApproval");
  assertTerminal("terminalApproval", "an approvalFunc");
  return async (request, { signal }) => {
    const code = showCode || request.blocks.some(hides) ? `\n${request.code}\n` : "";
    const answer = await askOnTerminal(`${code}\n${question(request)}`, { signal, fresh: true });
    return toResponse(answer?.trim() ?? "");
  };
}

/** @throws InvalidInputError if there is no person to ask: the content of a pipe is not a person's answer. */
export function assertTerminal(owner: string, instead: string): void {
  if (process.stdin.isTTY && process.stdout.isTTY) return;
  throw new InvalidInputError(`${owner} needs a terminal, but standard input or output is not one`, {
    remedy: `Run the program in a terminal, or write ${instead} that asks in another way.`,
  });
}

/** Whether the code contains characters that a screen would hide. */
function hides({ code }: CodeBlock): boolean {
  const plain = code.replaceAll("\r\n", "\n");
  return showHidden(plain) !== plain;
}

function question({ blocks }: ApprovalRequest): string {
  const languages = [...new Set(blocks.map(({ language }) => language))].join(" and ");
  return `Run this ${sanitizeTerminalText(languages)} code? [y/N, or what to change] `;
}

function toResponse(answer: string): ApprovalResponse {
  if (/^y(es)?$/i.test(answer)) return { approved: true, reason: "The user allowed it." };
  const said = /^(no?)?$/i.test(answer) ? "Ask what they want, or try another way." : `They said: ${answer}`;
  return { approved: false, reason: `The user refused to run this code. ${said}` };
}
