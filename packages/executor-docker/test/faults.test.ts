import { BackendUnavailableError } from "@fenced/core";
import { beginBlock } from "@fenced/executor-testkit";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { createExecutor, printed, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { startForeignContainer } from "./support/foreign-container.ts";

const lost = (reason: RegExp) => (error: unknown) =>
  BackendUnavailableError.isInstance(error) && reason.test(error.message);
const patient = { timeout: 120_000 };

describe("faults", { ...needs("docker"), ...patient }, () => {
  it("a block that runs out of memory ends with 137 and an explanation", async () => {
    await using executor = createExecutor({ memoryBytes: 67_108_864 });
    const other = run(executor, "python", "import time; time.sleep(5); print('lives on')");
    for (const [language, code] of [
      ["python", "x = []\nwhile True: x.append(bytearray(1 << 20))"],
      ["bash", "python3 -c 'x = bytearray(1 << 30)'"],
    ] as const) {
      const result = await run(executor, language, code);
      expect(result.exitCode).toBe(137);
      expect(result.stderr).toMatch(/killed because its container ran out of memory \(limit: 64 MiB\)/);
    }
    expect((await other).output).toBe("lives on\n");
    expect(await printed(executor, "python", "print('next')")).toBe("next");
  });

  it("a block that needs more shared memory than there is ends with 135 and an explanation", async () => {
    await using executor = createExecutor({ memoryBytes: 268_435_456 });
    // In small pieces, so that no memory of its own comes on top, which can end the process before.
    const code =
      "from multiprocessing.shared_memory import SharedMemory\nheld = SharedMemory(create=True, size=SIZE)\nfor start in range(0, SIZE, 100_000): held.buf[start : start + 100_000] = bytes(100_000)\nheld.close(); held.unlink()\nprint('fits')";
    expect(await printed(executor, "python", code.replaceAll("SIZE", "90_000_000"))).toBe("fits");
    const result = await run(executor, "python", code.replaceAll("SIZE", "140_000_000"));
    expect(result.exitCode).toBe(135);
    expect(result.stderr).toMatch(/ended by SIGBUS.*shared memory.*\/dev\/shm/);
  });

  it("a block that kills itself ends with 137 and no explanation", async () => {
    await using executor = createExecutor();
    const result = await run(executor, "bash", "kill -9 $$");
    expect([result.exitCode, result.output]).toEqual([137, ""]);
  });

  it("a fork bomb ends at its timeout, and the container stays usable", async () => {
    await using executor = createExecutor({ pidsLimit: 120 });
    const bomb = executor.executeCodeBlocks(
      [{ language: "bash", code: "b() { b | b & b | b & }; b; while :; do :; done" }],
      {
        timeoutMs: 3000,
      },
    );
    const result = await bomb;
    expect([result.exitCode, result.timedOut]).toEqual([124, true]);
    expect(await printed(executor, "python", "print('next')")).toBe("next");
    const alive = "import os; print(sum(name.isdigit() for name in os.listdir('/proc')))";
    // What was killed is there until it is reaped.
    await expect.poll(async () => Number(await printed(executor, "python", alive)), patient).toBeLessThan(8);
  });

  it("a block for which no process is left causes a clear error, and restart() helps", async () => {
    await using executor = createExecutor({ pidsLimit: 30 });
    await run(executor, "bash", "for each in $(seq 1 40); do sleep 100 & done");
    await expect(run(executor, "python", "print(1)")).rejects.toSatisfy(lost(/No process could be started.*pidsLimit/));
    await executor.restart();
    expect(await printed(executor, "python", "print('next')")).toBe("next");
  });

  it("a full disk is reported by the program, and the next block runs", async () => {
    const volume = `fenced-test-${process.pid}-small`;
    await docker("volume", "create", "-o", "type=tmpfs", "-o", "device=tmpfs", "-o", "o=size=1m,mode=1777", volume);
    try {
      await using executor = createExecutor({ extraVolumes: { [volume]: { bind: "/small" } } });
      const result = await run(executor, "python", "open('/small/file', 'wb').write(bytes(1 << 22))");
      expect(result.exitCode).toBe(1);
      expect(result.stderr).toMatch(/No space left/);
      expect(await printed(executor, "python", "print('next')")).toBe("next");
    } finally {
      await docker("volume", "rm", volume);
    }
  });

  it.each([
    ["killed", (name: string) => docker("kill", name), /ended with exit code 137/],
    ["removed", (name: string) => docker("rm", "--force", name), /ended with exit code 137/],
    ["stopped", (name: string) => docker("stop", name), /ended with exit code/],
  ])(
    "a container that is %s under a block causes a clear error, and the next call uses a new one",
    async (_, end, reason) => {
      await using executor = createExecutor();
      await executor.files.write("kept.txt", "kept");
      const { result } = await beginBlock(executor, { language: "bash", code: "echo started; sleep 1000" });
      await end(executor.containerName);
      expect(await result.catch((error: unknown) => error)).toSatisfy(lost(reason));
      expect(await printed(executor, "bash", "cat kept.txt")).toBe("kept");
    },
  );

  it("a container that is killed while it starts causes a clear error", async () => {
    for (;;) {
      await using executor = createExecutor();
      const starting = executor.start().catch((error: unknown) => error);
      await expect.poll(() => docker("kill", executor.containerName).catch(() => undefined), patient).toBeDefined();
      const error = await starting;
      // The kill may have come too late for this start.
      if (error === undefined) continue;
      // It may also have come after the supervisor had answered, but before the start was over.
      expect(error).toSatisfy(lost(/(was killed while it started|is lost): it ended.*call again/is));
      expect(await printed(executor, "bash", "echo next")).toBe("next");
      return;
    }
  });

  it("a block that kills everything in the container, even the supervisor, causes a clear error", async () => {
    await using executor = createExecutor();
    await expect(run(executor, "bash", "kill -9 -1; sleep 100")).rejects.toSatisfy(lost(/is lost/));
    expect(await printed(executor, "python", "print('next')")).toBe("next");
  });

  it("a block that kills its shepherd ends along with everything that it started", async () => {
    await using executor = createExecutor();
    const code = "sleep 100 & kill -9 $PPID; sleep 100";
    expect(await run(executor, "bash", code)).toMatchObject({ exitCode: 137, timedOut: false });
    // What was killed has its name until it is reaped.
    const count = () => printed(executor, "bash", "cat /proc/[0-9]*/comm | grep -c sleep || true");
    await expect.poll(count, patient).toBe("0");
  });

  it("a supervisor that does not answer is abandoned along with its container", async () => {
    await using executor = createExecutor();
    const result = await executor.executeCodeBlocks([{ language: "bash", code: "kill -STOP -1; sleep 1000" }], {
      timeoutMs: 1000,
    });
    expect(result).toMatchObject({ exitCode: 124, timedOut: true });
    expect(await printed(executor, "python", "print('next')")).toBe("next");
  });

  // Otherwise it would end only when the supervisor counts as hung.
  it("a start whose supervisor never answers can be aborted", { timeout: 120_000 }, async () => {
    const containerName = `fenced-test-${process.pid}-hangs`;
    await startForeignContainer(containerName);
    try {
      const hang = `printf '#!/bin/sh\nexec sleep 1234\n' >/tmp/hang; chmod +x /tmp/hang
        cp /tmp/hang "$(command -v python3)"`;
      await docker("exec", containerName, "sh", "-c", hang);
      const executor = createExecutor({ containerName, reuse: true });
      const aborting = new AbortController();
      const started = executor.start({ signal: aborting.signal });
      const running = async () => docker("exec", containerName, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
      await expect.poll(running, { timeout: 60_000 }).toContain("sleep 1234");
      const reason = new Error("enough");
      aborting.abort(reason);
      await expect(started).rejects.toBe(reason);
      await executor.stop();
    } finally {
      await docker("rm", "--force", "--volumes", containerName);
    }
  });

  it("functions are set up again in a new container", async () => {
    const { FunctionWithRequirements } = await import("@fenced/core");
    const double = FunctionWithRequirements.fromString("def double(n):\n    return 2 * n\n");
    const reasons: string[] = [];
    await using executor = createExecutor({ functions: [double], onSessionLost: (reason) => reasons.push(reason) });
    const code = "from functions import double; print(double(4))";
    expect(await printed(executor, "python", code)).toBe("8");
    await docker("kill", executor.containerName);
    await expect.poll(() => reasons, patient).toHaveLength(1);
    expect(await printed(executor, "python", code)).toBe("8");
  });
});
