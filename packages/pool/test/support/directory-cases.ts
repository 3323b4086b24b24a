import type { SessionHandle } from "@fenced/core";
import { expect, it } from "vitest";
import type { SessionDirectory, SessionHold, SessionMessage } from "../../src/index.ts";
import { eventually } from "./runs.ts";

/** Two processes' ways to one directory. */
export interface TwoWays {
  one: SessionDirectory;
  other: SessionDirectory;
}

export const leaseMs = 60_000;
export const checkpoint = "ab".repeat(32);
export const handle: SessionHandle = {
  version: 1,
  component: { provider: "@acme/executors:Some", componentType: "code_executor", version: 1, config: {} },
  session: { secret: "s", list: [1] },
};
export const [ann, bob] = ["ann-process", "bob-process"];
let keys = 0;
export const newKey = (): string => `user-${(keys += 1)} ✓`;

/** Takes a free key. */
export async function take(
  directory: SessionDirectory,
  key: string,
  owner = ann,
  lease = leaseMs,
): Promise<SessionHold> {
  const answer = await directory.acquire(key, { owner, leaseMs: lease, request: "hand-over" });
  if (!answer.isHeld) throw new Error(`held by ${answer.owner}`);
  return { key, owner, token: answer.token };
}

async function heard(directory: SessionDirectory, owner: string) {
  const messages: SessionMessage[] = [];
  const end = await directory.listen(owner, (message) => messages.push(message));
  return { messages, end };
}

/** What holds for every directory. */
export function directoryCases(ways: () => TwoWays): void {
  it("of one process at a time, with growing tokens, and keeps what is known of a session", async () => {
    const { one, other } = ways();
    const key = newKey();
    const first = await take(one, key);
    expect(await other.acquire(key, { owner: bob, leaseMs, request: "hand-over" })).toMatchObject({
      isHeld: false,
      owner: ann,
    });
    const note = { handle, checkpoint, lost: "something" };
    expect(await one.update(first, note)).toBe(true);
    expect(await one.release(first, note)).toBe(true);
    const second = await other.acquire(key, { owner: bob, leaseMs, request: "hand-over" });
    expect(second).toMatchObject({ isHeld: true, note, isAbandoned: false });
    const hold = { key, owner: bob, token: second.isHeld ? second.token : 0 };
    expect(hold.token).toBeGreaterThan(first.token);
    expect(await other.release(hold, undefined)).toBe(true);
    const third = await one.acquire(key, { owner: ann, leaseMs, request: "hand-over" });
    expect(third).toMatchObject({ isHeld: true, note: {}, isAbandoned: false });
    expect(third.isHeld && third.token).toBeGreaterThan(hold.token);
  });

  it("and refuses everything that is done with one that is over", async () => {
    const { one, other } = ways();
    const key = newKey();
    const first = await take(one, key);
    await one.release(first, {});
    const second = await take(other, key, bob);
    expect(await one.update(first, { lost: "late" })).toBe(false);
    expect(await one.release(first, undefined)).toBe(false);
    expect(await one.renew([first], { owner: ann, leaseMs })).toEqual([]);
    // Neither with the right token, nor as the right process.
    expect(await one.update({ ...first, token: second.token }, {})).toBe(false);
    expect(await one.update({ ...first, owner: bob }, {})).toBe(false);
    expect(await other.renew([second], { owner: bob, leaseMs })).toMatchObject([{ key, token: second.token }]);
    await other.release(second, {});
    expect(await one.acquire(key, { owner: ann, leaseMs, request: "hand-over" })).toMatchObject({ note: {} });
  });

  it("and tells who has one what is requested, and who waits that it is free", async () => {
    const { one, other } = ways();
    const key = newKey();
    const [toAnn, toBob] = [await heard(one, ann), await heard(other, bob)];
    const hold = await take(one, key);
    await other.acquire(key, { owner: bob, leaseMs, request: "hand-over" });
    await eventually(() => expect(toAnn.messages).toEqual([{ key, event: "hand-over" }]));
    expect(await one.renew([hold], { owner: ann, leaseMs })).toMatchObject([{ request: "hand-over" }]);
    await other.acquire(key, { owner: bob, leaseMs, request: "end" });
    await other.acquire(key, { owner: bob, leaseMs, request: "hand-over" });
    expect(await one.renew([hold], { owner: ann, leaseMs })).toMatchObject([{ request: "end" }]);
    await one.release(hold, undefined);
    await eventually(() => expect(toBob.messages).toEqual([{ key, event: "released" }]));
    await toAnn.end();
    await toBob.end();
    const again = await take(one, key, bob);
    expect(await one.renew([again], { owner: bob, leaseMs })).toEqual([{ key, token: again.token }]);
  });

  it("of which one process gets each, however many want it at the same time", async () => {
    const { one, other } = ways();
    for (let round = 0; round < 20; round += 1) {
      const key = newKey();
      const answers = await Promise.all(
        [0, 1, 2, 3, 4, 5].map((index) =>
          (index % 2 === 0 ? one : other).acquire(key, { owner: `p${index}`, leaseMs, request: "hand-over" }),
        ),
      );
      expect(answers.filter(({ isHeld }) => isHeld)).toHaveLength(1);
    }
  });
}
