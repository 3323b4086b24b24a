import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { killProcesses, runChild, type BlockOutcome, type ChildProgram } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { isAlive } from "../support/is-alive.ts";
import { TextSink } from "../support/text-sink.ts";

const env = { PATH: process.env["PATH"] ?? "" };

async function run(script: string, more: Partial<ChildProgram> = {}, output = new TextSink()): Promise<BlockOutcome> {
  return runChild({ command: ["sh", "-c", script], cwd: tmpdir(), env, ...more }, output);
}

describe.skipIf(process.platform === "win32")("runChild", () => {
  it("writes both outputs and returns the exit code, also for a signal", async () => {
    const output = new TextSink();
    expect(await run("echo out; exit 7", {}, output)).toMatchObject({ exitCode: 7 });
    expect(await run("echo err >&2; kill -TERM $$", {}, output)).toMatchObject({ exitCode: 143 });
    expect(output).toMatchObject({ stdout: "out\n", stderr: "err\n" });
  });

  it("passes the input to the program, or none", async () => {
    const output = new TextSink();
    await run("cat", { stdin: "given " }, output);
    await run("cat; echo end", {}, output);
    expect(output.stdout).toBe("given end\n");
  });

  it("makes the program wait while the sink has no room, and then continues", async () => {
    let open = (): void => {};
    const room = new Promise<void>((resolve) => {
      open = resolve;
    });
    const output = new TextSink(undefined, room);
    const running = run("head -c 3000000 /dev/zero | tr '\\0' x", {}, output);
    await output.begun;
    await sleep(50);
    expect(output.stdout.length).toBeLessThan(500_000);
    open();
    await running;
    expect(output.stdout.length).toBe(3_000_000);
  });

  it("ends with its main process and all of its output, even if a child keeps the output open", async () => {
    const mark = { name: "FENCED_SESSION", value: `run-child-${process.pid}` };
    const started = new Set<number>();
    const script = "sleep 300 & head -c 150000 /dev/zero | tr '\\0' x; echo";
    const onStart = (pid: number): void => void started.add(pid);
    const output = new TextSink();
    await run(script, { env: { ...env, [mark.name]: mark.value }, onStart }, output);
    expect(output.stdout.length).toBe(150_001);
    await killProcesses({ mark, endedRoots: started });
  });

  it("ends with exit code 137 when the signal aborts, and kills what left its process group", async () => {
    const controller = new AbortController();
    const detach = `const { spawn } = require("node:child_process");
      console.log(spawn("sleep", ["300"], { detached: true, stdio: "ignore" }).pid);`;
    const script = `node -e '${detach}' & exec sleep 300`;
    const output = new TextSink(controller.signal);
    void output.begun.then(() => controller.abort());
    expect(await run(script, {}, output)).toMatchObject({ exitCode: 137 });
    expect(output.stdout).toMatch(/^\d+\n$/);
    expect(await isAlive(Number(output.stdout))).toBe(false);
  });

  it("says what could not be started, and what to do", async () => {
    const failed = run("", { command: ["/nowhere/program"] });
    await expect(failed).rejects.toSatisfy(BackendUnavailableError.isInstance);
    await expect(failed).rejects.toThrow(/"\/nowhere\/program" could not be started.*Check that/s);
  });
});
