import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { StartedProcess } from "../../src/processes/started-process.ts";

it("holds single bytes that nobody reads as one piece of memory, and makes their program wait", async () => {
  let written = 0;
  const process = new StartedProcess(
    async (sink) => {
      for (; written < 270_000; written += 1) await sink.write({ type: "stdout", data: Uint8Array.of(written % 256) });
      return { exitCode: 0 };
    },
    { signal: new AbortController().signal },
  );
  const started = process.takeOwner();
  let before = -1;
  while (written > before) {
    before = written;
    for (let count = 0; count < 100; count += 1) await turn();
  }
  expect(written).toBeLessThan(265_000);
  const lengths: number[] = [];
  let at = 0;
  for await (const chunk of started.stdout) {
    lengths.push(chunk.length);
    expect([chunk[0], chunk.at(-1)]).toEqual([at % 256, (at + chunk.length - 1) % 256]);
    at += chunk.length;
  }
  expect([lengths[0], at]).toEqual([262_144, 270_000]);
  expect(await started.wait()).toEqual({ exitCode: 0 });
});

it("closes both streams, and drops what a reader that left does not take", async () => {
  const process = new StartedProcess(
    async (sink) => {
      for (let count = 0; count < 100; count += 1) await sink.write({ type: "stderr", data: "x".repeat(10_000) });
      await sink.write({ type: "stdout", data: "end" });
      return { exitCode: 3 };
    },
    { signal: new AbortController().signal },
  );
  const started = process.takeOwner();
  await started.stderr.cancel();
  const reader = started.stdout.getReader();
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("end");
  expect(await reader.read()).toEqual({ done: true, value: undefined });
  expect(await started.wait()).toEqual({ exitCode: 3 });
});

function later() {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** A program that reads all of its input, and what it has read. */
function readingProgram({ hasTerminal }: { readonly hasTerminal: boolean }) {
  const pieces: string[] = [];
  const ending = new AbortController();
  const process = new StartedProcess(
    async (_, { stdin = [] }) => {
      for await (const piece of stdin) pieces.push(Buffer.from(piece).toString());
      return { exitCode: 0 };
    },
    { signal: ending.signal, takesInput: true, hasTerminal },
  );
  const open = () => {
    const { stdin } = process.open();
    if (stdin === undefined) throw new Error("it takes no input");
    return stdin;
  };
  return { open, pieces, ending, process };
}

it("refuses what is written after another handle has ended the input", async () => {
  const end = later();
  const process = new StartedProcess(
    async (_, { stdin = [] }) => {
      for await (const piece of stdin) expect(piece).toHaveLength(0);
      await end.promise;
      return { exitCode: 0 };
    },
    { signal: new AbortController().signal, takesInput: true },
  );
  const [one, other] = [process.open(), process.open()];
  const writer = other.stdin?.getWriter();
  await one.stdin?.close();
  await expect(writer?.write(Buffer.from("late"))).rejects.toThrow("its input was closed");
  end.resolve();
  expect(await one.wait()).toEqual({ exitCode: 0 });
});

it("lets others type on a terminal when one closes or aborts its stream", async () => {
  const { open, pieces, ending, process } = readingProgram({ hasTerminal: true });
  const [closing, aborting, typing] = [open(), open(), open().getWriter()];
  await closing.close();
  await aborting.abort(new Error("gone"));
  await typing.write(Buffer.from("a"));
  await typing.write(Buffer.from("b"));
  expect(pieces).toEqual(["a", "b"]);
  ending.abort(new Error("over"));
  await expect(process.exit).rejects.toThrow("over");
  await expect(typing.write(Buffer.from("c"))).rejects.toThrow("over");
});

it("aborts a write to a terminal that waits for the program, and none of another handle", async () => {
  const taken: string[] = [];
  const going = later();
  const process = new StartedProcess(
    async (_, { stdin = [] }) => {
      for await (const piece of stdin) {
        taken.push(Buffer.from(piece).toString());
        await going.promise;
        if (taken.length === 2) break;
      }
      return { exitCode: 0 };
    },
    { signal: new AbortController().signal, takesInput: true, hasTerminal: true },
  );
  const [one, other] = [process.open().stdin?.getWriter(), process.open().stdin?.getWriter()];
  const first = one?.write(Buffer.from("first"));
  const second = other?.write(Buffer.from("second"));
  while (taken.length === 0) await turn();
  await Promise.all([one?.abort(new Error("left")), expect(first).rejects.toThrow("left")]);
  going.resolve();
  await second?.catch(() => {});
  expect(await process.exit).toEqual({ exitCode: 0 });
  expect(taken).toEqual(["first", "second"]);
});
