import { join } from "node:path";
import { InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { describe, expect, it } from "vitest";
import { terminalApproval } from "../../src/index.ts";
import { talk, talkInTerminal, type Told } from "../support/in-terminal.ts";
import { untyped } from "../support/untyped.ts";

const program = await bundledCommand(join(import.meta.dirname, "..", "fixtures", "approve-in-terminal.ts"));
const question = "Run this bash code? [y/N, or what to change] ";
const task = "```bash\necho 6 times 7 is $((6 * 7))\n```";

/** Runs a program that asks in a terminal whether to run `task`, and types the keys. */
async function answer(keys: string, ...args: readonly string[]): Promise<Told> {
  return talkInTerminal([...program, task, ...args], { keys, question });
}

describe("terminalApproval", needs("python3", "bash"), () => {
  it.each(["y\r", "YES\r", " y \r"])("shows the code, and runs it after %j", async (keys) => {
    const { output, exitCode } = await answer(keys);
    expect(output.indexOf("echo 6 times 7")).toBeLessThan(output.indexOf(question));
    expect(output).toContain("<6 times 7 is 42");
    expect(exitCode).toBe(0);
  });

  it("omits the code if showCode is false", async () => {
    const { output } = await answer("y\r", "false");
    expect(output).not.toContain("echo 6");
    expect(output).toContain("<6 times 7 is 42");
  });

  it("shows code with control characters even if showCode is false", async () => {
    const hiding = "```bash\necho 6 times 7 is $((6 * 7)) \u009b;reboot;\u009c\n```";
    const { output } = await talkInTerminal([...program, hiding, "false"], { keys: "n\r", question });
    expect(output).toContain(String.raw`\u{9b};reboot;\u{9c}`);
  });

  it.each(["\r", "n\r", "No\r", "\u0004"])("runs nothing after %j", async (keys) => {
    const { output, exitCode } = await answer(keys);
    expect(output).not.toContain("7 is 42");
    expect(output).toContain("Reason: The user refused to run this code. Ask what they want, or try another way.>");
    expect(exitCode).toBe(0);
  });

  it.each(["yesterday", "use 7 times 6"])("refuses after %j, and passes these words on", async (said) => {
    const { output } = await answer(`${said}\r`);
    expect(output).not.toContain("7 is 42");
    expect(output).toContain(`Reason: The user refused to run this code. They said: ${said}>`);
  });

  it("turns Ctrl+C into SIGINT", async () => {
    const { output, exitCode } = await answer("\u0003");
    expect(output).not.toContain("7 is 42");
    expect(output).toContain("Error: interrupted");
    expect(exitCode).toBe(1);
  });
});

describe("terminalApproval without a terminal", () => {
  it("accepts no answer from a pipe", async () => {
    const { output, exitCode } = await talk([...program, task], ({ stdin }) => stdin.end("y\n"));
    expect(output).toContain("terminalApproval needs a terminal, but standard input or output is not one.");
    expect(output).toContain("write an approvalFunc that asks in another way.");
    expect(output).not.toContain("7 is 42");
    expect(exitCode).toBe(1);
  });

  it("checks its options", () => {
    expect(() => terminalApproval(untyped({ showCode: "no" }))).toThrow(InvalidInputError);
    expect(() => terminalApproval(untyped({ showcode: true }))).toThrow(/showCode/);
  });
});
