import { ExecutorStoppedError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const kept = { sessionId: "kept-session", keepSession: true };

describe("a session that is to be kept", needs("python3"), () => {
  it("outlives an executor that could not start with it", async () => {
    await using setting = await Setting.open();
    const first = setting.executor(kept);
    await run(first, "value = 41");
    await first.stop();
    setting.emulator.provoke({ kind: "forbidden", on: "executions" });
    const refused = setting.executor(kept);
    await expect(refused.start()).rejects.toThrow(/may not use the session pool/);
    setting.emulator.setFaults([]);
    expect((await run(setting.executor(kept), "print(value + 1)")).output).toBe("42\n");
  });

  it("outlives an executor that is stopped while it starts", async () => {
    await using setting = await Setting.open();
    const first = setting.executor(kept);
    await run(first, "value = 41");
    await first.stop();
    setting.emulator.provoke({ kind: "latency", milliseconds: 1000, on: "executions" });
    const stopped = setting.executor(kept);
    const starting = stopped.start().catch((error: unknown) => error);
    await expect.poll(() => stopped.sessionId).toBe("kept-session");
    await stopped.stop();
    expect(await starting).toSatisfy(ExecutorStoppedError.isInstance);
    setting.emulator.setFaults([]);
    expect((await run(setting.executor(kept), "print(value + 1)")).output).toBe("42\n");
  });
});
