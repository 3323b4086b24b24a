import { InvalidInputError } from "@fenced/core";
import { ExecutorSessions } from "@fenced/pool";
import { expect, test } from "vitest";

test.each(["run", "runStream", "files", "executor"] as const)(
  "%s() says what to pass instead of a number",
  async (method) => {
    const sessions = new ExecutorSessions({ create: () => Promise.reject(new Error("not needed")) });
    const call = async (): Promise<unknown> => Reflect.apply(sessions[method], sessions, [42, []]);
    await expect(call).rejects.toThrow(`sessions.${method}: the key is not a string`);
    await expect(call).rejects.toThrow(/such as `sessions/);
    await expect(call).rejects.toThrow(InvalidInputError);
  },
);
