import type { CodeExecutor } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import type { ExecutorSubject } from "../src/index.ts";
import { localSubject } from "./local-subject.ts";
import { collectCases } from "./run-case.ts";
import { WrongExecutor } from "./wrong-executor.ts";

// These leave files behind, some of which the other looks for.
const saves = "filename > keeps the file when the block fails";
const lists = "files > lists files recursively, with relative paths and sizes, sorted";
const fails = "blocks > returns the program's exit code";
const creates = "files > lists nothing at first";

/** An executor that records when it is stopped. */
class Watched extends WrongExecutor {
  readonly #log: string[];
  readonly #name: number;

  constructor(good: CodeExecutor, log: string[], name: number) {
    super(good);
    this.#log = log;
    this.#name = name;
  }

  override async stop(): Promise<void> {
    this.#log.push(`stop ${this.#name}`);
    await super.stop();
  }
}

/** Cases of a suite whose executors are numbered; number 0 is started and stopped to learn what it can do. */
function watch({ shared = true, subject = localSubject }: { shared?: boolean; subject?: ExecutorSubject } = {}) {
  const log: string[] = [];
  let created = 0;
  let end = async (): Promise<void> => {};
  const watched: ExecutorSubject = {
    ...subject,
    create: async (options) => {
      const name = created++;
      log.push(`create ${name}`);
      return new Watched(await subject.create(options), log, name);
    },
  };
  const cases = shared ? collectCases(watched, {}, (hook) => (end = hook)) : collectCases(watched);
  const skip = () => {
    throw new Error("must not be skipped");
  };
  const run = async (name: string): Promise<void> => cases.get(name)?.({ skip });
  const since = (): string[] => log.splice(0);
  return { run, since, end: () => end() };
}

class FailsToExit extends WrongExecutor {
  override executeCodeBlocks: CodeExecutor["executeCodeBlocks"] = async (blocks, options) => {
    const result = await this.good.executeCodeBlocks(blocks, options);
    return blocks.some(({ code }) => code.includes("exit(7)")) ? { ...result, exitCode: 0 } : result;
  };
}

class DoesNotStop extends WrongExecutor {
  override async stop(): Promise<void> {
    await super.stop();
    if (this.started) throw new Error("cannot be stopped");
  }
  started = false;
  override executeCodeBlocks: CodeExecutor["executeCodeBlocks"] = (blocks, options) => {
    this.started = true;
    return this.good.executeCodeBlocks(blocks, options);
  };
}

describe("cases that need no executor of their own", needs("python3"), () => {
  it("share one, with an empty workspace, which is stopped after the last of them", async () => {
    const { run, since, end } = watch();
    for (const name of [saves, lists, saves]) await run(name);
    expect(since()).toEqual(["create 0", "stop 0", "create 1"]);
    await run(creates);
    expect(since()).toEqual(["create 2", "stop 2"]);
    await end();
    expect(since()).toEqual(["stop 1"]);
  });

  it("get one each if the runner has no hook to stop it, or if they run concurrently", async () => {
    const alone = watch({ shared: false });
    await alone.run(saves);
    await alone.run(lists);
    expect(alone.since()).toEqual(["create 0", "stop 0", "create 1", "stop 1", "create 2", "stop 2"]);
    const { run, since, end } = watch();
    await Promise.all([run(saves), run(lists)]);
    expect(since()).toEqual(["create 0", "stop 0", "create 1", "create 2"]);
    await end();
    expect(since().toSorted()).toEqual(["stop 1", "stop 2"]);
  });

  it("get a new one after a failed case", async () => {
    const subject = { ...localSubject, create: async () => new FailsToExit(await localSubject.create({})) };
    const { run, since, end } = watch({ subject });
    await run(saves);
    await expect(run(fails)).rejects.toThrow(/7/);
    await run(lists);
    await end();
    expect(since()).toEqual(["create 0", "stop 0", "create 1", "stop 1", "create 2", "stop 2"]);
  });

  it("fail after the last case if the executor cannot be stopped", async () => {
    const subject = { ...localSubject, create: async () => new DoesNotStop(await localSubject.create({})) };
    const { run, end } = watch({ subject });
    await run(saves);
    await expect(end()).rejects.toThrow("cannot be stopped");
  });
});
