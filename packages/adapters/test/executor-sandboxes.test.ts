import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { ExecutorSandboxes, type ExecutorSandboxesOptions } from "../src/index.ts";

function sandboxes(options: Partial<ExecutorSandboxesOptions> = {}): ExecutorSandboxes {
  const made = new ExecutorSandboxes({ createExecutor: () => new LocalCommandLineCodeExecutor(), ...options });
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

describe("sandboxes by id", needs("python3"), () => {
  it("replace one of the same id, and do one thing at a time with it", async () => {
    const all = sandboxes();
    const [first, second] = await Promise.all([all.create("a"), all.create("a")]);
    expect(all.list()).toEqual([second]);
    await expect(first.run({ command: "true" })).rejects.toThrow(/stopped/);
    expect(await second.run({ command: "echo here" })).toEqual({ stdout: "here\n", stderr: "", exitCode: 0 });
    await Promise.all([all.end("a"), all.end("a"), all.end("never")]);
    expect(await all.find("a")).toBeUndefined();
  });

  it("are found again after their program, once, and ended by their id", async () => {
    const resumed: string[] = [];
    const executors: LocalCommandLineCodeExecutor[] = [];
    const all = sandboxes({
      resumeExecutor: ({ id }) => {
        resumed.push(id);
        if (id !== "known") return undefined;
        const executor = new LocalCommandLineCodeExecutor();
        executors.push(executor);
        return executor;
      },
    });
    const [one, other] = await Promise.all([all.find("known"), all.find("known")]);
    expect([one === other, await all.find("unknown"), resumed]).toEqual([true, undefined, ["known", "unknown"]]);
    await all.end("known");
    await expect(executors[0]?.start()).rejects.toThrow(/disposed/);
  });

  it("end with those that are being made", async () => {
    const all = new ExecutorSandboxes({ createExecutor: () => new LocalCommandLineCodeExecutor() });
    const making = all.create("a");
    await all[Symbol.asyncDispose]();
    const made = await making;
    await expect(made.run({ command: "true" })).rejects.toThrow(/stopped/);
  });

  it("say what is wrong", async () => {
    await expect(sandboxes().create("a", { snapshot: "x" })).rejects.toThrow(/no snapshots here. Set `snapshots`/);
    const construct = (options: object): unknown => Reflect.construct(ExecutorSandboxes, [options]);
    const none = construct({ createExecutor: () => ({}) });
    if (!(none instanceof ExecutorSandboxes)) throw new Error("it was not created");
    await expect(none.create("a")).rejects.toThrow(/must be a code executor/);
    expect(() => construct({ createExecutor: () => ({}), wrong: 1 })).toThrow(/wrong/);
  });
});
