import { BackendUnavailableError } from "@fenced/core";
import { expect, it } from "vitest";
import { say, type Script, ScriptedExecutor } from "../support/scripted-executor.ts";

it("reports a loss in the next result if the place refuses the run that was to report it", async () => {
  const nothing = (): void => {};
  const runs: NonNullable<Script["runs"]> = {
    list: () => Promise.resolve({ runs: [], forgotten: new Map() }),
    submit: () => Promise.reject(new BackendUnavailableError("There is no room", { remedy: "Wait." })),
    async *read() {},
    serve: () => nothing,
    go: nothing,
    cancel: nothing,
    note: () => Promise.resolve(),
  };
  await using executor = new ScriptedExecutor({ runs, lostState: "The variables are gone" });
  const run = await executor.submit([say("refused")]);
  await expect(run.result()).rejects.toThrow("There is no room");
  expect((await executor.executeCodeBlocks([say("next")])).stateLost).toBe(true);
});
