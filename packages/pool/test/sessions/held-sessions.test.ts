import { ExecutorStoppedError, InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it, vi } from "vitest";
import { SessionLease } from "../../src/directory/session-lease.ts";
import { memoryDirectory, type SessionNote } from "../../src/index.ts";
import { directoryAround } from "../support/directory-around.ts";
import { checkpoint, handle } from "../support/directory-cases.ts";
import { localSessions } from "../support/local-sessions.ts";
import { eventually, failure, later, sh } from "../support/runs.ts";
import { movingSessions, temporaryStore } from "../support/shared-sessions.ts";

describe("a session that this process holds", needs("bash"), () => {
  it("goes on when a renewal is not answered", async () => {
    const leaseMs = 9_000;
    const directory = memoryDirectory();
    const renewals: number[] = [];
    const silentOnce = directoryAround(directory, {
      async acquire(...given) {
        const answer = await directory.acquire(...given);
        return answer.isHeld ? { ...answer, leaseMs } : answer;
      },
      renew(...given) {
        renewals.push(renewals.length);
        return renewals.length === 1 ? new Promise(() => {}) : directory.renew(...given);
      },
    });
    const onSessionLost = vi.fn<(key: string, reason: string) => void>();
    const sessions = localSessions({ directory: silentOnce, leaseMs, onSessionLost, onError: () => {} });
    await sessions.run("ann", sh("echo hers > note"));
    await eventually(() => expect(renewals.length).toBeGreaterThan(2));
    expect(onSessionLost).not.toHaveBeenCalled();
    expect(await sessions.run("ann", sh("cat note"))).toMatchObject({ output: "hers\n", stateLost: false });
  });

  it("tells a loss once, also if its process is killed then", async () => {
    const directory = memoryDirectory();
    const found = await directory.acquire("ann", { owner: "earlier", leaseMs: 1_000, request: "hand-over" });
    const token = found.isHeld ? found.token : 0;
    await directory.release({ key: "ann", owner: "earlier", token }, { lost: "something" });
    const notes: SessionNote[] = [];
    const noting = directoryAround(directory, {
      update(hold, note) {
        notes.push(note);
        return directory.update(hold, note);
      },
    });
    const checkpoints = await temporaryStore();
    const sessions = movingSessions({ directory: noting, checkpoints, checkpointAfterRuns: true });
    expect((await sessions.run("ann", sh("true"))).stateLost).toBe(true);
    expect((await sessions.run("ann", sh("true"))).stateLost).toBe(false);
    expect(notes.map(({ lost }) => lost)).toEqual(["something", undefined]);
  });

  it("does not confirm an upload that another process's session lacks", async () => {
    const directory = memoryDirectory();
    const losing = directoryAround(directory, { update: async () => false });
    const checkpoints = await temporaryStore();
    const sessions = movingSessions({ directory: losing, checkpoints, checkpointAfterRuns: true });
    const upload = sessions.files("ann").writeStream("note").getWriter();
    await upload.write(Buffer.from("a"));
    expect(await failure(upload.close())).toBeInstanceOf(ExecutorStoppedError);
  });
});

it("a lease's updates at the same time keep each other's changes", async () => {
  const notes: SessionNote[] = [];
  const go = later<true>();
  const owner = {
    async update(_hold: unknown, note: SessionNote) {
      await go.promise;
      notes.push(note);
      return true;
    },
    release: async () => true,
  };
  const found = { isHeld: true, token: 1, leaseMs: Infinity, note: {}, isAbandoned: false } as const;
  const lease = new SessionLease({ key: "ann", owner: "one", token: 1 }, found, { until: Infinity, owner });
  const updates = [lease.update({ checkpoint }), lease.update({ handle })];
  go.give(true);
  expect(await Promise.all(updates)).toEqual([true, true]);
  expect(notes.at(-1)).toEqual({ checkpoint, handle });
});

it("sessions need a whole directory", () => {
  for (const missing of [{ update: undefined }, { listen: undefined }]) {
    const directory = Object.assign(memoryDirectory(), missing);
    expect(() => localSessions({ directory })).toThrow(InvalidInputError);
  }
});
