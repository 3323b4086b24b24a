import { BackendUnavailableError } from "@fenced/core";
import { PlaceGone } from "@fenced/executor-kit";
import { expect, it } from "vitest";
import { ScriptedExecutor } from "../support/scripted-executor.ts";

it("a program whose place turns out to be gone says what to do, and the next one runs in another place", async () => {
  let attempts = 0;
  const executor = new ScriptedExecutor({
    async runProgram() {
      attempts += 1;
      if (attempts === 1) throw new PlaceGone("The container was removed.");
      return { exitCode: 0 };
    },
  });
  const reasons: string[] = [];
  executor.onSessionLost((reason) => reasons.push(reason));
  const first = await executor.processes?.start({ command: ["true"] });
  const error: unknown = await first?.wait().catch((reason: unknown) => reason);
  expect(BackendUnavailableError.isInstance(error)).toBe(true);
  expect(String(error)).toMatch(/The session was lost: The container was removed\. Call again/);
  expect(reasons).toEqual(["The container was removed."]);
  const second = await executor.processes?.start({ command: ["true"] });
  expect(await second?.wait()).toMatchObject({ exitCode: 0 });
  expect(executor.calls).toEqual(["open", "open"]);
  await executor.stop();
});
