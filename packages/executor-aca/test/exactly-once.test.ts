import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const [sessions, blocksEach] = [20, process.env["FENCED_SUITE"] === "full" ? 50 : 10];

describe("blocks in 20 sessions at once, with faults in 5 % of all calls", needs("python3"), () => {
  it("run exactly once each, and none is lost", { timeout: 300_000 }, async () => {
    await using setting = await Setting.open();
    const executors = Array.from({ length: sessions }, () => setting.executor({ retryForMs: 120_000 }));
    await Promise.all(executors.map((executor) => executor.start()));
    const rate = 0.05 / 6;
    setting.emulator.setFaults([
      { kind: "drop", rate },
      { kind: "drop", afterwards: true, rate },
      { kind: "server-error", rate },
      { kind: "server-error", afterwards: true, rate },
      { kind: "server-error", status: 503, rate },
      { kind: "too-many-requests", retryAfterMs: 0, rate },
    ]);
    const work = executors.map(async (executor, session) => {
      for (let block = 0; block < blocksEach; block += 1) {
        const code = `with open("ran.txt", "a") as file: file.write("${block}\\n")\nprint("${session}/${block}")`;
        const result = await run(executor, code);
        expect(result).toMatchObject({ exitCode: 0, output: `${session}/${block}\n`, stateLost: false });
      }
    });
    await Promise.all(work);
    setting.emulator.setFaults([]);
    const expected = Array.from({ length: blocksEach }, (_, block) => `${block}\n`).join("");
    for (const executor of executors) {
      expect(new TextDecoder().decode(await executor.files.read("ran.txt"))).toBe(expected);
    }
  });
});
