import { join } from "node:path";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { directoryStore } from "../src/index.ts";
import { localExecutor } from "./support/local-executor.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

async function kept(code: string) {
  const store = directoryStore(join(await temporaryDirectory(), "store"));
  const executor = localExecutor({ stateful: true });
  const result = await executor.executeCodeBlocks([{ language: "python", code }]);
  expect(result).toMatchObject({ exitCode: 0 });
  const receipt = await executor.checkpoint({ store, variables: true });
  const later = localExecutor({ stateful: true, restore: { store, id: receipt.id } });
  await later.start();
  return { receipt, later };
}

describe("variables in a checkpoint", needs("python3"), () => {
  it("come back with their own values beside names and values that cannot be kept", async () => {
    const { receipt, later } = await kept(`
class Lazy:
    @property
    def __class__(self):
        raise RuntimeError("not yet")
lazy = Lazy()
globals()["a b"] = "wrong"
globals()["class"] = "wrong"
x, y = "x", "y"
`);
    const listed = receipt.incomplete.map(({ name }) => name);
    expect(listed).toEqual(expect.arrayContaining(["a b", "class", "lazy"]));
    expect([...receipt.variables].filter((name) => name.length === 1)).toEqual(["x", "y"]);
    const result = await later.executeCodeBlocks([{ language: "python", code: "print(x, y)" }]);
    expect(result.output.trim()).toBe("x y");
  });

  it("stay in a session whose checkpoint is cancelled while one of them is written for ever", async () => {
    const store = directoryStore(join(await temporaryDirectory(), "store"));
    const executor = localExecutor({ stateful: true });
    const code = `
import time
class Hangs:
    def __reduce__(self):
        open("begun", "w").close()
        while True:
            try:
                time.sleep(1)
            except BaseException:
                pass
x, hangs = [1], Hangs()
`;
    const losses: string[] = [];
    executor.onSessionLost((reason) => losses.push(reason));
    await executor.executeCodeBlocks([{ language: "python", code }]);
    const cancelling = new AbortController();
    const taken = executor.checkpoint({ store, variables: true, signal: cancelling.signal });
    const failure = taken.catch(String);
    const hasBegun = async () => (await executor.files.list()).some(({ path }) => path === "begun");
    await expect.poll(hasBegun, { timeout: 60_000 }).toBe(true);
    cancelling.abort(new Error("enough"));
    expect(await failure).toContain("enough");
    const { output, stateLost } = await executor.executeCodeBlocks([{ language: "python", code: "print(x)" }]);
    expect([output, stateLost, losses]).toEqual(["[1]\n", false, []]);
    expect(await store.list()).toEqual([]);
  });

  it("are listed if reading them ends the interpreter, and another one runs the next block", async () => {
    const { later } = await kept(`
import os
class Ends:
    def __reduce__(self):
        return os._exit, (3,)
ends, x = Ends(), 1
`);
    expect(later.restored?.variables).toEqual([]);
    expect(later.restored?.incomplete.map(({ name }) => name)).toEqual(expect.arrayContaining(["ends", "x"]));
    const result = await later.executeCodeBlocks([{ language: "python", code: "print('alive')" }]);
    expect(result.output.trim()).toBe("alive");
  });
});
