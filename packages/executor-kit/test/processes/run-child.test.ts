import { tmpdir } from "node:os";
import { BackendUnavailableError } from "@fenced/core";
import { killProcesses, runChild, type BlockOutcome, type ChildProgram } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { isAlive } from "../support/is-alive.ts";

const env = { PATH: process.env["PATH"] ?? "" };

async function run(
  script: string,
  more: Partial<ChildProgram> = {},
  onOutput = (): void => {},
): Promise<{ text: string; outcome: BlockOutcome }> {
  const { signal } = new AbortController();
  let text = "";
  for (const events = runChild({ command: ["sh", "-c", script], cwd: tmpdir(), env, signal, ...more }); ;) {
    const { value, done } = await events.next();
    if (done === true) return { text, outcome: value };
    if (!("data" in value)) continue;
    text += `${value.type}:${String(value.data)}`;
    onOutput();
  }
}

describe.skipIf(process.platform === "win32")("runChild", () => {
  it("yields both outputs and returns the exit code, also for a signal", async () => {
    expect(await run("echo out; exit 7")).toMatchObject({ text: "stdout:out\n", outcome: { exitCode: 7 } });
    expect(await run("echo err >&2; kill -TERM $$")).toMatchObject({
      text: "stderr:err\n",
      outcome: { exitCode: 143 },
    });
  });

  it("passes the input to the program, or none", async () => {
    expect((await run("cat", { stdin: "given" })).text).toBe("stdout:given");
    expect((await run("cat; echo end")).text).toBe("stdout:end\n");
  });

  it("ends with its main process and all of its output, even if a child keeps the output open", async () => {
    const mark = { name: "FENCED_SESSION", value: `run-child-${process.pid}` };
    const started = new Set<number>();
    const script = "sleep 300 & head -c 150000 /dev/zero | tr '\\0' x; echo";
    const onStart = (pid: number): void => void started.add(pid);
    const { text } = await run(script, { env: { ...env, [mark.name]: mark.value }, onStart });
    expect(text.replaceAll("stdout:", "").length).toBe(150_001);
    await killProcesses({ mark, endedRoots: started });
  });

  it("ends with exit code 137 when the signal aborts, and kills what left its process group", async () => {
    const controller = new AbortController();
    const detach = `const { spawn } = require("node:child_process");
      console.log(spawn("sleep", ["300"], { detached: true, stdio: "ignore" }).pid);`;
    const script = `node -e '${detach}' & exec sleep 300`;
    const { text, outcome } = await run(script, { signal: controller.signal }, () => controller.abort());
    expect(outcome.exitCode).toBe(137);
    expect(text).toMatch(/^stdout:\d+\n$/);
    expect(await isAlive(Number(text.slice("stdout:".length)))).toBe(false);
  });

  it("says what could not be started, and what to do", async () => {
    const failed = run("", { command: ["/nowhere/program"] });
    await expect(failed).rejects.toSatisfy(BackendUnavailableError.isInstance);
    await expect(failed).rejects.toThrow(/"\/nowhere\/program" could not be started.*Check that/s);
  });
});
