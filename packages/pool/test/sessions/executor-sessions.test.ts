import { type CodeExecutor, InvalidInputError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { TelemetryRecorder } from "@fenced/test-support/telemetry";
import { describe, expect, it, vi } from "vitest";
import { ExecutorSessions, QuotaExceededError } from "../../src/index.ts";
import { localSessions, untilGo } from "../support/local-sessions.ts";
import { eventually, later, sh } from "../support/runs.ts";

describe("sessions", needs("bash"), () => {
  it("keep the state of each key, and do not share it", async () => {
    const sessions = localSessions();
    await sessions.run("ann", sh("echo hers > note"));
    await sessions.run("bob", sh("echo his > note"));
    expect((await sessions.run("ann", sh("cat note"))).output).toBe("hers\n");
    expect(Buffer.from(await sessions.files("bob").read("note")).toString()).toBe("his\n");
    expect(sessions.counts).toEqual({ open: 2, starting: 0, ending: 0, running: 0, waiting: 0 });
  });

  it("refuse an executor that another key has, which keeps its session", async () => {
    const shared = new LocalCommandLineCodeExecutor();
    const sessions = localSessions({ create: () => shared });
    await sessions.run("ann", sh("echo hers > note"));
    await expect(sessions.run("bob", sh("cat note"))).rejects.toThrow(
      "`create` returned an executor that it has returned before",
    );
    await sessions.end("bob");
    expect((await sessions.run("ann", sh("cat note"))).output).toBe("hers\n");
  });

  it("start once for concurrent runs of one key", async () => {
    const create = vi.fn<() => CodeExecutor>(() => new LocalCommandLineCodeExecutor());
    const sessions = localSessions({ create, maxRunningPerKey: 4 });
    const runs = [1, 2, 3, 4].map((number) => sessions.run("a", sh(`echo ${number}`)));
    expect((await Promise.all(runs)).map(({ output }) => output)).toEqual(["1\n", "2\n", "3\n", "4\n"]);
    expect(create).toHaveBeenCalledOnce();
  });

  it("queue the runs of one key in order, without blocking other keys", async () => {
    const sessions = localSessions();
    const order: string[] = [];
    const first = sessions.run("a", untilGo).then(() => order.push("first"));
    const second = sessions.run("a", sh("true")).then(() => order.push("second"));
    const third = sessions.run("a", sh("true")).then(() => order.push("third"));
    await sessions.run("b", sh("true")).then(() => order.push("other"));
    await eventually(() => expect(sessions.counts).toMatchObject({ running: 1, waiting: 2 }));
    await sessions.files("a").write("go", "");
    await Promise.all([first, second, third]);
    expect(order).toEqual(["other", "first", "second", "third"]);
  });

  it("can be streamed, and a waiting consumer that leaves gives up its place", async () => {
    const sessions = localSessions({ maxWaiting: 1 });
    const first = sessions.runStream("a", untilGo);
    expect((await first.next()).value).toMatchObject({ type: "block-start" });
    const waiting = sessions.runStream("a", sh("true"));
    const next = waiting.next();
    await eventually(() => expect(sessions.counts.waiting).toBe(1));
    await waiting.return?.();
    await expect(next).rejects.toMatchObject({ name: "AbortError" });
    expect(sessions.counts.waiting).toBe(0);
    await first.return?.();
    expect((await sessions.run("a", sh("echo free"))).output).toBe("free\n");
  });
});

describe("quotas", needs("bash"), () => {
  it("reject one session too many at once, and accept it when there is room", async () => {
    const sessions = localSessions({ maxSessions: 1 });
    await sessions.run("a", sh("true"));
    await expect(sessions.run("b", sh("true"))).rejects.toThrow(QuotaExceededError);
    await expect(sessions.files("b").list()).rejects.toThrow("There are already 1 sessions");
    expect(() => sessions.runStream("b", sh("true"))).toThrow(QuotaExceededError);
    await sessions.end("a");
    expect((await sessions.run("b", sh("echo in"))).output).toBe("in\n");
  });

  it("reject one run too many at once, but do not count access to files", async () => {
    const sessions = localSessions({ maxWaiting: 1 });
    const runs = [sessions.run("a", untilGo), sessions.run("a", sh("true"))];
    await eventually(() => expect(sessions.counts).toMatchObject({ running: 1, waiting: 1 }));
    await expect(sessions.run("a", sh("true"))).rejects.toThrow(QuotaExceededError);
    expect(() => sessions.runStream("a", sh("true"))).toThrow("1 running calls, and 1 waiting");
    await sessions.files("a").write("go", "");
    await Promise.all(runs);
  });

  it("count a session that is still starting", async () => {
    const made = later<CodeExecutor>();
    const sessions = localSessions({ maxSessions: 1, create: () => made.promise });
    const run = sessions.run("a", sh("echo up"));
    await eventually(() => expect(sessions.counts.starting).toBe(1));
    await expect(sessions.run("b", sh("true"))).rejects.toThrow(QuotaExceededError);
    made.give(new LocalCommandLineCodeExecutor());
    expect((await run).output).toBe("up\n");
  });
});

it("reports the numbers of open, starting and running sessions to telemetry", needs("bash"), async () => {
  await using recorder = new TelemetryRecorder();
  const sessions = localSessions();
  const run = sessions.run("a", untilGo);
  await eventually(() => expect(sessions.counts.running).toBe(1));
  expect(await recorder.gauges()).toEqual({
    "fenced.sessions open": 1,
    "fenced.sessions starting": 0,
    "fenced.sessions running": 1,
    "fenced.sessions.waiting_runs": 0,
  });
  await sessions.files("a").write("go", "");
  await run;
  await sessions.end("a");
  expect(await recorder.gauges()).toMatchObject({ "fenced.sessions open": 0, "fenced.sessions running": 0 });
});

it("checks its options", () => {
  expect(() => new ExecutorSessions({ create: () => new LocalCommandLineCodeExecutor(), maxSessions: 0 })).toThrow(
    InvalidInputError,
  );
  const misspelt = { create: () => new LocalCommandLineCodeExecutor(), idleTimeout: 5 };
  expect(() => new ExecutorSessions(misspelt)).toThrow('Did you mean "idleTimeoutMs"');
});
