import { ByteQueue } from "@fenced/core";
import { expect, it } from "vitest";

it("gives the bytes in order, whatever the sizes of the pieces, and keeps no piece", () => {
  const queue = new ByteQueue();
  const reused = new Uint8Array(7);
  const taken: number[] = [];
  let next = 0;
  for (let round = 0; round < 2000; round += 1) {
    const piece = reused.subarray(0, round % 8);
    for (const index of piece.keys()) piece[index] = next++ % 251;
    queue.add(piece);
    if (round % 3 === 0) taken.push(...queue.take(round % 11));
  }
  expect(queue.length).toBe(next - taken.length);
  taken.push(...queue.take(1), ...queue.take());
  expect(taken).toEqual(Array.from({ length: next }, (_, index) => index % 251));
  expect([queue.length, queue.take(), queue.take(5)]).toEqual([0, new Uint8Array(0), new Uint8Array(0)]);
});

it("gives memory of its own", () => {
  const queue = new ByteQueue();
  queue.add(Uint8Array.of(1, 2, 3));
  const first = queue.take(2);
  queue.add(Uint8Array.of(4, 5, 6, 7));
  expect([...first, ...queue.take()]).toEqual([1, 2, 3, 4, 5, 6, 7]);
});
