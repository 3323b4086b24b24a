import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { startDemoInTerminal, type DemoOutcome } from "./run-demo.ts";

const question = "Run this python code? [y/N, or what to change] ";

/** Runs the demo in a terminal and types these answers, each when it is asked for. */
async function answer(...answers: readonly string[]): Promise<DemoOutcome> {
  const { child, outcome } = startDemoInTerminal(["--approve", "--executor", "local"]);
  let shown = "";
  child.stdout.on("data", (text: string) => (shown += text));
  for (const [index, line] of answers.entries()) {
    await expect.poll(() => shown.split(question).length - 1, { timeout: 60_000 }).toBe(index + 1);
    child.stdin.write(line);
  }
  return outcome;
}

describe("--approve", needs("python3"), () => {
  it("runs the code after a yes, and asks each time", async () => {
    const { exitCode, stdout } = await answer("y\n", "YES\n");
    expect(stdout).toContain("Adelie: males 4043.5 g");
    expect(exitCode).toBe(0);
  });

  it.each(["n\n", "\n", "yesterday\n", "\u0004"])(
    "runs nothing after %j, and stops because a recording cannot react",
    async (line) => {
      const { exitCode, stdout } = await answer(line);
      expect(stdout).not.toContain("runner (exit code");
      expect(stdout).toContain("Stopped: you refused the code, and a recorded coder cannot write anything else.");
      expect(exitCode).toBe(1);
    },
  );

  it("can be stopped with Ctrl+C", async () => {
    const { exitCode, stdout } = await answer("\u0003");
    expect(stdout).toContain("Stopped.");
    expect(stdout).not.toContain("runner (exit code");
    expect(exitCode).toBe(130);
  });
});
