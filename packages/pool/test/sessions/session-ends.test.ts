import { existsSync } from "node:fs";
import { type CodeExecutor, ExecutorStoppedError, FencedError, type WorkspaceFiles } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it, vi } from "vitest";
import { memoryDirectory } from "../../src/index.ts";
import { breakable, type Breaking } from "../support/breakable.ts";
import { directoryAround } from "../support/directory-around.ts";
import { forever, localSessions, untilGo, workspaceOf } from "../support/local-sessions.ts";
import { eventually, failure, later, sh } from "../support/runs.ts";

describe("the end of a session", needs("bash"), () => {
  it("deletes its workspace, kills its run, and rejects the run with the reason", async () => {
    const sessions = localSessions();
    const workspace = await workspaceOf(sessions, "a");
    const run = sessions.run("a", forever);
    await eventually(() => expect(sessions.counts.running).toBe(1));
    const failed = failure(run);
    await sessions.end("a");
    expect(String(await failed)).toContain("The session was ended: end() was called for it.");
    expect(existsSync(workspace)).toBe(false);
    expect(sessions.counts).toEqual({ open: 0, starting: 0, ending: 0, running: 0, waiting: 0 });
    await sessions.end("a");
  });

  it("also works during its start, and leaves nothing behind", async () => {
    const made = later<CodeExecutor>();
    const create = vi.fn<() => Promise<CodeExecutor>>(() => made.promise);
    const sessions = localSessions({ create });
    const run = sessions.run("a", sh("true"));
    await eventually(() => expect(create).toHaveBeenCalledOnce());
    expect(sessions.counts.starting).toBe(1);
    const failed = failure(run);
    const ended = sessions.end("a");
    expect(await failed).toBeInstanceOf(ExecutorStoppedError);
    const executor = new LocalCommandLineCodeExecutor();
    made.give(executor);
    await ended;
    expect(sessions.counts.starting).toBe(0);
    // The executor was disposed of for good.
    await expect(executor.start()).rejects.toThrow(ExecutorStoppedError);
  });

  it("frees the key at whichever moment of the start it comes", async () => {
    const directory = memoryDirectory();
    const steps = Array.from({ length: 30 }, (_, index) => index);
    for (const step of steps) {
      const acquired = later<true>();
      const answering = directoryAround(directory, {
        async acquire(...given) {
          const answer = await directory.acquire(...given);
          acquired.give(true);
          return answer;
        },
      });
      const sessions = localSessions({ directory: answering, handoverTimeoutMs: 500 });
      const run = failure(sessions.run("a", sh("true")));
      await acquired.promise;
      for (let turn = 0; turn < step; turn += 1) await Promise.resolve();
      await sessions.end("a");
      expect(await run).toBeInstanceOf(ExecutorStoppedError);
    }
  });

  it("is final for its files: a late upload does not start a new session", async () => {
    const create = vi.fn<() => CodeExecutor>(() => new LocalCommandLineCodeExecutor());
    const sessions = localSessions({ create });
    const files = sessions.files("a");
    await files.write("early", "1");
    const upload = files.writeStream("late").getWriter();
    await upload.write(Buffer.from("some"));
    await sessions.end("a");
    await expect(upload.write(Buffer.from("more"))).rejects.toThrow(ExecutorStoppedError);
    await expect(files.write("late", "2")).rejects.toThrow(ExecutorStoppedError);
    await expect(files.stat("early")).rejects.toThrow(ExecutorStoppedError);
    expect(create).toHaveBeenCalledOnce();
    expect(await sessions.files("a").list()).toEqual([]);
  });

  it("comes when it is idle, not while it is used, and the next result reports that the state is lost", async () => {
    const onSessionLost = vi.fn<(key: string, reason: string) => void>();
    const sessions = localSessions({ idleTimeoutMs: 2000, onSessionLost });
    const workspace = await workspaceOf(sessions, "a");
    await sessions.run("a", sh("sleep 3; echo here"));
    const slow = sessions.files("a").writeStream("slow").getWriter();
    await slow.write(Buffer.from("a"));
    expect((await sessions.run("a", sh("sleep 3"))).stateLost).toBe(false);
    await slow.close();
    await eventually(() => expect(existsSync(workspace)).toBe(false));
    expect(onSessionLost).toHaveBeenCalledExactlyOnceWith("a", "The session was not used for 2000 ms.");
    expect((await sessions.run("a", sh("true"))).stateLost).toBe(true);
    expect((await sessions.run("a", sh("true"))).stateLost).toBe(false);
  });
});

describe("an idle session", needs("bash"), () => {
  it.each([
    ["a failed upload", (files: WorkspaceFiles) => files.writeStream("../outside").getWriter().write(Buffer.from("a"))],
    ["a failed download", (files: WorkspaceFiles) => new Response(files.readStream("missing")).text()],
  ])("also ends after %s", async (_, use) => {
    const sessions = localSessions({ idleTimeoutMs: 100 });
    await expect(use(sessions.files("a"))).rejects.toSatisfy(FencedError.isInstance);
    await eventually(() => expect(sessions.counts).toMatchObject({ open: 0, starting: 0, ending: 0 }));
  });
});

describe("onSessionLost", needs("bash"), () => {
  const mistake = new Error("a mistake of the callback");
  const throwing = (): void => {
    throw mistake;
  };
  const rejecting = (): Promise<void> => Promise.reject(mistake);

  it.each([
    ["throws", throwing],
    ["rejects", rejecting],
  ])("that %s is reported, and neither keeps the session nor ends the program", async (_, onSessionLost) => {
    const onError = vi.fn<(error: unknown) => void>();
    const sessions = localSessions({ idleTimeoutMs: 100, onSessionLost, onError });
    await sessions.run("a", sh("true"));
    await eventually(() => expect(sessions.counts).toMatchObject({ open: 0, ending: 0 }));
    expect(onError).toHaveBeenCalledExactlyOnceWith(mistake);
  });
});

describe("an executor that breaks down", needs("bash"), () => {
  it("is replaced if it is dead, and reported as lost", async () => {
    const breaking: Breaking = { broken: "no" };
    const made: CodeExecutor[] = [];
    const onSessionLost = vi.fn<(key: string, reason: string) => void>();
    const create = (): CodeExecutor => {
      breaking.broken = "no";
      made.push(breakable(new LocalCommandLineCodeExecutor(), breaking));
      return made.at(-1) as CodeExecutor;
    };
    const sessions = localSessions({ create, onSessionLost });
    const workspace = await workspaceOf(sessions, "a");
    breaking.broken = "for good";
    await expect(sessions.run("a", sh("true"))).rejects.toThrow("The backend is gone");
    const { output, stateLost } = await sessions.run("a", sh("pwd"));
    expect({ made: made.length, stateLost }).toEqual({ made: 2, stateLost: true });
    expect(output.trim()).not.toBe(workspace);
    expect(existsSync(workspace)).toBe(false);
    expect(onSessionLost).toHaveBeenCalledExactlyOnceWith("a", "The executor broke down.");
  });

  it("keeps its state if it recovers", async () => {
    const breaking: Breaking = { broken: "no" };
    const sessions = localSessions({ create: () => breakable(new LocalCommandLineCodeExecutor(), breaking) });
    await sessions.run("a", sh("echo kept > note"));
    breaking.broken = "once";
    await expect(sessions.run("a", sh("true"))).rejects.toThrow("The backend is gone");
    expect(await sessions.run("a", sh("cat note"))).toMatchObject({ output: "kept\n", stateLost: false });
  });

  it("rejects the waiting runs if it does not start, and frees its place", async () => {
    const create = vi.fn<() => CodeExecutor>(() => new LocalCommandLineCodeExecutor());
    create.mockImplementationOnce(() => {
      throw new TypeError("no image");
    });
    const sessions = localSessions({ create, maxSessions: 1, maxRunningPerKey: 2 });
    const runs = await Promise.allSettled([sessions.run("a", sh("true")), sessions.run("a", sh("true"))]);
    expect(runs.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect((await sessions.run("b", sh("echo in"))).output).toBe("in\n");
  });

  it("is stopped if it starts too late", async () => {
    const executor = new LocalCommandLineCodeExecutor();
    const start = executor.start({});
    const made = later<CodeExecutor>();
    const sessions = localSessions({ create: () => made.promise, startTimeoutMs: 50 });
    await expect(sessions.run("a", sh("true"))).rejects.toThrow("did not start within 50 ms");
    await start;
    made.give(executor);
    await eventually(() => expect(sessions.counts.ending).toBe(0));
    await expect(executor.start()).rejects.toThrow(ExecutorStoppedError);
  });
});

describe("drain", needs("bash"), () => {
  it("lets runs end within the grace period, rejects others, and leaves nothing", async () => {
    const sessions = localSessions();
    const workspace = await workspaceOf(sessions, "a");
    const running = sessions.run("a", untilGo);
    await eventually(() => expect(sessions.counts.running).toBe(1));
    const waiting = failure(sessions.run("a", sh("true")));
    const files = sessions.files("a");
    await files.list();
    const drained = sessions.drain({ graceMs: 60_000 });
    expect(String(await waiting)).toContain("The service is shutting down");
    await expect(sessions.run("b", sh("true"))).rejects.toThrow(ExecutorStoppedError);
    expect(() => sessions.runStream("b", sh("true"))).toThrow(ExecutorStoppedError);
    await expect(sessions.files("b").list()).rejects.toThrow(ExecutorStoppedError);
    await files.write("go", "");
    expect(await running).toMatchObject({ exitCode: 0, output: "ready\n" });
    await drained;
    expect(existsSync(workspace)).toBe(false);
    expect(sessions.counts.open).toBe(0);
  });

  it("kills what still runs after the grace period, which a second call can shorten", async () => {
    const sessions = localSessions();
    const workspace = await workspaceOf(sessions, "a");
    const running = failure(sessions.run("a", forever));
    await eventually(() => expect(sessions.counts.running).toBe(1));
    const slowly = sessions.drain({ graceMs: 600_000 });
    await sessions.drain({ graceMs: 10 });
    expect(String(await running)).toContain("The service is shutting down");
    await slowly;
    expect(existsSync(workspace)).toBe(false);
  });
});
