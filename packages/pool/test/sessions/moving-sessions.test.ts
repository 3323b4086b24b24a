import { existsSync } from "node:fs";
import {
  BackendUnavailableError,
  type CheckpointStore,
  ExecutorStoppedError,
  InvalidInputError,
  SessionInUseError,
} from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it, vi } from "vitest";
import { memoryDirectory } from "../../src/index.ts";
import { directoryAround } from "../support/directory-around.ts";
import { forever, localSessions, untilGo, workspaceOf } from "../support/local-sessions.ts";
import { eventually, failure, later, sh } from "../support/runs.ts";
import { movingSessions, temporaryStore } from "../support/shared-sessions.ts";

describe("sessions that share a directory", needs("bash"), () => {
  it("move to where the next call is, with their files, and have one checkpoint", async () => {
    const shared = { directory: memoryDirectory(), checkpoints: await temporaryStore() };
    const [one, other] = [movingSessions(shared), movingSessions(shared)];
    const workspace = await workspaceOf(one, "ann");
    await one.run("ann", sh("mkdir made; echo hers > made/note"));
    const { output, stateLost } = await other.run("ann", sh("cat made/note; echo more >> made/note"));
    expect({ output, stateLost }).toEqual({ output: "hers\n", stateLost: false });
    expect(existsSync(workspace)).toBe(false);
    expect([one.counts.open, other.counts.open]).toEqual([0, 1]);
    expect(Buffer.from(await one.files("ann").read("made/note")).toString()).toBe("hers\nmore\n");
    expect(await shared.checkpoints.list()).toHaveLength(1);
    await other.end("ann");
    expect(one.counts.open).toBe(0);
    expect(await shared.checkpoints.list()).toEqual([]);
    expect(await other.run("ann", sh("ls"))).toMatchObject({ output: "", stateLost: false });
  });

  it("move when the running call has ended, before those that wait", async () => {
    const shared = { directory: memoryDirectory(), checkpoints: await temporaryStore() };
    const [one, other] = [movingSessions(shared), movingSessions(shared)];
    const order: string[] = [];
    const running = one.run("ann", untilGo).then(() => order.push("running"));
    await eventually(() => expect(one.counts.running).toBe(1));
    const files = one.files("ann");
    await files.list();
    const there = other.run("ann", sh("ls")).then(({ output }) => order.push(`there ${output.trim()}`));
    const waiting = one.run("ann", sh("ls")).then(({ output }) => order.push(`waiting ${output.trim()}`));
    await files.write("go", "");
    await Promise.all([running, there, waiting]);
    expect(order).toEqual(["running", "there go", "waiting go"]);
    // An object that a caller has kept finds them where they are.
    await files.write("late", "");
    expect((await other.run("ann", sh("ls"))).output).toBe("go\nlate\n");
  });

  it("stay where a call runs for too long, and say who has them", async () => {
    const shared = { directory: memoryDirectory(), checkpoints: await temporaryStore() };
    const [one, other] = [movingSessions(shared), movingSessions({ ...shared, handoverTimeoutMs: 200 })];
    const running = failure(one.run("ann", forever));
    await eventually(() => expect(one.counts.running).toBe(1));
    const refused = await failure(other.run("ann", sh("true")));
    expect(refused).toBeInstanceOf(SessionInUseError);
    expect(String(refused)).toContain(`held by another process, `);
    expect(String(refused)).toContain(`:${process.pid}:`);
    await movingSessions(shared).end("ann");
    expect(String(await running)).toContain("end() was called for it in another process");
    expect(await other.run("ann", sh("echo in"))).toMatchObject({ output: "in\n", stateLost: false });
  });

  it("do not move without checkpoints, and say so at once", async () => {
    const directory = memoryDirectory();
    const [one, other] = [localSessions({ directory }), localSessions({ directory })];
    await one.run("ann", sh("echo hers > note"));
    await expect(other.run("ann", sh("true"))).rejects.toThrow(/Send the calls of this key.*pass `checkpoints`/);
    expect((await one.run("ann", sh("cat note"))).output).toBe("hers\n");
    await one.drain();
    expect((await other.run("ann", sh("ls"))).stateLost).toBe(true);
    expect((await other.run("ann", sh("ls"))).stateLost).toBe(false);
  });

  it("survive a shutdown, in which what still runs is killed", async () => {
    const shared = { directory: memoryDirectory(), checkpoints: await temporaryStore() };
    const [one, other] = [movingSessions(shared), movingSessions(shared)];
    const running = failure(one.run("ann", sh("echo first > note; sleep 600")));
    await eventually(async () => expect(await one.files("ann").list()).toHaveLength(1));
    await one.drain({ graceMs: 10 });
    expect(await running).toBeInstanceOf(ExecutorStoppedError);
    expect(await other.run("ann", sh("cat note"))).toMatchObject({ output: "first\n", stateLost: false });
  });

  it("are kept while they are idle, for the next call anywhere", async () => {
    const shared = { directory: memoryDirectory(), checkpoints: await temporaryStore(), idleTimeoutMs: 100 };
    const onSessionLost = vi.fn<(key: string, reason: string) => void>();
    const [one, other] = [movingSessions({ ...shared, onSessionLost }), movingSessions(shared)];
    const files = one.files("ann");
    await files.write("note", "hers");
    await eventually(() => expect(one.counts).toMatchObject({ open: 0, ending: 0 }));
    expect(await other.run("ann", sh("cat note"))).toMatchObject({ output: "hers", stateLost: false });
    expect(Buffer.from(await files.read("note")).toString()).toBe("hers");
    expect(onSessionLost).not.toHaveBeenCalled();
  });

  it("have what calls do that begin while they are kept", async () => {
    const store = await temporaryStore();
    const [listed, go] = [later<true>(), later<true>()];
    // Everything has been read by then.
    const checkpoints: CheckpointStore = {
      begin: async (...given) => {
        const writer = await store.begin(...given);
        return {
          has: (part) => writer.has(part),
          put: (bytes) => writer.put(bytes),
          async commit(checkpoint) {
            listed.give(true);
            await go.promise;
            return writer.commit(checkpoint);
          },
          [Symbol.asyncDispose]: () => writer[Symbol.asyncDispose](),
        };
      },
      open: (id) => store.open(id),
      list: () => store.list(),
      delete: (id) => store.delete(id),
      sweep: () => store.sweep(),
    };
    const sessions = movingSessions({ checkpoints, idleTimeoutMs: 50 });
    const [files, stream] = [sessions.files("ann"), sessions.files("ann")];
    // Together: the session must not be kept between them.
    await Promise.all([files.write("early", ""), stream.list()]);
    await listed.promise;
    const writer = stream.writeStream("streamed").getWriter();
    const written = [files.write("late", ""), writer.write(Buffer.from("a")).then(() => writer.close())];
    const during = sessions.run("ann", sh("touch ran"));
    await new Promise(setImmediate);
    go.give(true);
    await Promise.all([...written, during]);
    await eventually(() => expect(sessions.counts).toMatchObject({ open: 0, ending: 0 }));
    expect((await sessions.run("ann", sh("ls"))).output).toBe("early\nlate\nran\nstreamed\n");
  });

  it("keep their checkpoint if the directory does not record their end", async () => {
    const shared = { directory: memoryDirectory(), checkpoints: await temporaryStore() };
    const one = movingSessions(shared);
    await one.run("ann", sh("echo hers > note"));
    await one.drain();
    const directory = directoryAround(shared.directory, { release: async () => false });
    const ending = movingSessions({ ...shared, directory });
    expect(await failure(ending.end("ann"))).toBeInstanceOf(BackendUnavailableError);
    expect(await shared.checkpoints.list()).toHaveLength(1);
  });

  it("stay where they are if they cannot be kept", async () => {
    const checkpoints = await temporaryStore();
    const broken = {
      ...checkpoints,
      begin: () => Promise.reject(new Error("the disk is full")),
      open: () => checkpoints.open(""),
    };
    const onError = vi.fn<(error: unknown) => void>();
    const sessions = movingSessions({ checkpoints: broken, idleTimeoutMs: 50, onError });
    await sessions.run("ann", sh("echo hers > note"));
    await eventually(() => expect(onError.mock.calls.length).toBeGreaterThan(1));
    expect((await sessions.run("ann", sh("cat note"))).output).toBe("hers\n");
    const onSessionLost = vi.fn<(key: string, reason: string) => void>();
    const last = movingSessions({ checkpoints: broken, onSessionLost, onError });
    await last.run("bob", sh("true"));
    await last.drain();
    expect(onSessionLost).toHaveBeenCalledExactlyOnceWith("bob", expect.stringContaining("could not be kept"));
  });
});

describe("sessions with checkpoints", needs("bash"), () => {
  it("take one after each run and each change of a file, if they are told to", async () => {
    const checkpoints = await temporaryStore();
    const sessions = movingSessions({ checkpoints, checkpointAfterRuns: true });
    await sessions.run("ann", sh("echo 1 > one"));
    const [first] = await checkpoints.list();
    expect(first).toMatchObject({ files: 1 });
    await sessions.files("ann").write("two", "2");
    const upload = sessions.files("ann").writeStream("three").getWriter();
    await upload.write(Buffer.from("3"));
    await upload.close();
    const after = await checkpoints.list();
    expect(after).toMatchObject([{ files: 3 }]);
    for await (const event of sessions.runStream("ann", sh("rm one two"))) expect(event).toBeDefined();
    expect(await checkpoints.list()).toMatchObject([{ files: 1 }]);
  });

  it("need executors that start with them", async () => {
    const shared = { directory: memoryDirectory(), checkpoints: await temporaryStore() };
    const one = movingSessions(shared);
    await one.run("ann", sh("echo hers > note"));
    const other = localSessions(shared);
    const refused = await failure(other.run("ann", sh("true")));
    expect(refused).toBeInstanceOf(InvalidInputError);
    expect(String(refused)).toContain("Pass its third argument on");
    const without = localSessions({ directory: shared.directory });
    await expect(without.run("ann", sh("true"))).rejects.toThrow("Pass the same `checkpoints` in all processes");
    // Nothing was lost by that.
    expect((await one.run("ann", sh("cat note"))).output).toBe("hers\n");
  });

  it("say which variables did not come back", needs("python3"), async () => {
    const shared = { directory: memoryDirectory(), checkpoints: await temporaryStore() };
    const onSessionLost = vi.fn<(key: string, reason: string) => void>();
    const stateful = () =>
      movingSessions({
        ...shared,
        onSessionLost,
        create: (_key, _signal, restore) => new LocalCommandLineCodeExecutor({ restore, stateful: true }),
      });
    const [one, other] = [stateful(), stateful()];
    const python = (code: string) => [{ language: "python", code }];
    await one.run("ann", python("price = 7"));
    expect(await other.run("ann", python("print(price)"))).toMatchObject({ output: "7\n", stateLost: false });
    await other.run("ann", python("rows = (row for row in [1])"));
    expect(await one.run("ann", python("print(price)"))).toMatchObject({ output: "7\n", stateLost: true });
    expect(onSessionLost).toHaveBeenCalledExactlyOnceWith("ann", expect.stringContaining('the variable "rows"'));
    expect((await one.run("ann", python("print(price)"))).stateLost).toBe(false);
  });

  it("are refused where nothing could be kept", () => {
    for (const options of [
      { onIdle: "checkpoint" },
      { onDrain: "checkpoint" },
      { checkpointAfterRuns: true },
    ] as const) {
      expect(() => localSessions(options)).toThrow(/needs `checkpoints`/);
    }
  });
});
