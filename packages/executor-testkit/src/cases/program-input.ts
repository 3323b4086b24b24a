import assert from "node:assert/strict";
import { ExecutorStoppedError, InvalidInputError, type CodeExecutor, type WritableProcess } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { seesClosedInput, startsPrograms } from "../needs.ts";
import { assertStopped, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { MemoryWatch } from "../observe/memory-watch.ts";
import { textOf, untilGo } from "../observe/started-program.ts";

const needs = [startsPrograms];
const megabyte = 1_048_576;
const piece = new Uint8Array(65_536).fill(120);
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Starts a command line whose input can be written while it runs. */
async function startReading(
  kit: CaseContext,
  executor: CodeExecutor,
  command: string,
  signal?: AbortSignal,
): Promise<WritableProcess> {
  assert.ok(executor.processes, "an executor with `capabilities.processes` has `processes`");
  const options = { command, stdin: true as const, ...(signal && { signal }) };
  return kit.within("processes.start", executor.processes.start(options));
}

/** Writes endlessly, as fast as the program accepts it. */
function writeOn({ stdin }: WritableProcess) {
  const writer = stdin.getWriter();
  const progress = { bytes: 0 };
  const failed = (async (): Promise<unknown> => {
    try {
      for (;;) {
        await writer.write(piece);
        progress.bytes += piece.length;
      }
    } catch (error) {
      return error;
    }
  })();
  return { progress, failed };
}

/** Input that is written while a program runs. */
export const programInput: readonly ConformanceCase[] = [
  {
    name: "a program reads and answers what is written while it runs, until its input is closed",
    needs,
    async run(kit) {
      const executor = await kit.shared();
      const command = 'echo ready; while IFS= read -r line; do echo "<$line>"; done; echo bye; exit 3';
      const started = await startReading(kit, executor, command);
      const writer = started.stdin.getWriter();
      const reader = started.stdout.pipeThrough(new TextDecoderStream()).getReader();
      const read = async (end: string): Promise<string> => {
        let text = "";
        while (!text.endsWith(end)) {
          const { value, done } = await kit.within("an answer", reader.read());
          assert.ok(!done, `the output ended after ${JSON.stringify(text)}`);
          text += value;
        }
        return text;
      };
      assert.equal(await read("ready\n"), "ready\n");
      for (const word of ["one", "zwölf", "a b"]) {
        await kit.within("write", writer.write(bytesOf(`${word}\n`)));
        assert.equal(await read(">\n"), `<${word}>\n`);
      }
      await kit.within("close", writer.close());
      assert.equal(await read("bye\n"), "bye\n");
      assert.deepEqual(await kit.within("wait()", started.wait()), { exitCode: 3 });
    },
  },
  {
    name: "passes the written bytes unchanged, to each program its own",
    needs,
    async run(kit) {
      const executor = await kit.shared();
      const bytes = Uint8Array.from({ length: megabyte + 7 }, (_, index) => (index * 31) % 256);
      const first = await startReading(kit, executor, "cat");
      const second = await startReading(kit, executor, "cat");
      const echo = new Response(first.stdout).arrayBuffer();
      const other = second.stdin.getWriter();
      await kit.within("write", other.write(bytesOf("other")));
      const writer = first.stdin.getWriter();
      for (let at = 0, size = 1; at < bytes.length; at += size, size = size * 3 + 1) {
        // The writer may reuse the memory afterwards.
        const chunk = bytes.slice(at, at + size);
        await kit.within("write", writer.write(chunk));
        chunk.fill(0);
      }
      await kit.within("close", writer.close());
      // The other one is still open.
      assert.ok(
        Buffer.from(bytes).equals(new Uint8Array(await kit.within("the output", echo))),
        "the bytes that came back differ",
      );
      assert.deepEqual(await kit.within("wait()", first.wait()), { exitCode: 0 });
      await kit.within("close", other.close());
      assert.equal(await textOf(kit, second.stdout), "other");
    },
  },
  {
    name: "a program that never reads makes its writer wait without taking memory, and can be killed",
    needs,
    async run(kit) {
      const executor = await kit.create();
      await executor.start();
      using memory = new MemoryWatch();
      const started = await startReading(kit, executor, `${untilGo}; exit 9`);
      const { progress, failed } = writeOn(started);
      const accepted = { name: "the writer", count: () => Promise.resolve(progress.bytes) };
      await kit.eventually("the writer waits", () =>
        assertStopped(accepted).then(
          () => true,
          () => undefined,
        ),
      );
      assert.ok(progress.bytes < 16 * megabyte, `${progress.bytes} bytes were accepted that nobody read`);
      await kit.within("kill()", started.kill());
      assert.deepEqual(await started.wait(), { exitCode: 137 });
      const error = await kit.within("the write", failed);
      assert.ok(InvalidInputError.isInstance(error), String(error));
      assert.ok(memory.peak() < 32 * megabyte, `${memory.peak()} bytes were kept`);
    },
  },
  {
    name: "writing to a program that ends fails, and wait() still returns its exit code",
    needs,
    async run(kit) {
      const executor = await kit.shared();
      const started = await startReading(kit, executor, "head -c 100000 >/dev/null; exit 4");
      const { failed } = writeOn(started);
      assert.deepEqual(await kit.within("wait()", started.wait()), { exitCode: 4 });
      const error = await kit.within("the write", failed);
      assert.ok(InvalidInputError.isInstance(error), String(error));
    },
  },
  {
    name: "writing to a program that has closed its input fails, and the program continues",
    needs: [startsPrograms, seesClosedInput],
    async run(kit) {
      const executor = await kit.create();
      const started = await startReading(kit, executor, `exec <&-; ${untilGo}; exit 5`);
      const error = await kit.within("the write", writeOn(started).failed);
      assert.ok(InvalidInputError.isInstance(error), String(error));
      await executor.files.write("go", ".");
      assert.deepEqual(await kit.within("wait()", started.wait()), { exitCode: 5 });
    },
  },
  {
    name: "closing the input of a program that has ended succeeds, and its child reads to the end",
    needs,
    async run(kit) {
      const executor = await kit.create();
      const command = "exec 3<&0; read -r line; { cat <&3 >/dev/null; printf . >left; } & exit 0";
      const started = await startReading(kit, executor, command);
      const writer = started.stdin.getWriter();
      await kit.within("write", writer.write(bytesOf("quit\n")));
      assert.deepEqual(await kit.within("wait()", started.wait()), { exitCode: 0 });
      await kit.within("close", writer.close());
      await kit.eventually("what is left has read to the end", () => workspaceHeartbeat(executor, "left").count());
    },
  },
  {
    name: "aborting the input drops pending writes and lets the program read to the end",
    needs,
    async run(kit) {
      const executor = await kit.create();
      const started = await startReading(kit, executor, `${untilGo}; cat >/dev/null; exit 6`);
      const writer = started.stdin.getWriter();
      const writes = Array.from({ length: 256 }, () => writer.write(piece));
      const failed = Promise.allSettled(writes);
      const reason = new Error("no more");
      await kit.within("abort", writer.abort(reason));
      const last = (await kit.within("the writes", failed)).at(-1);
      assert.deepEqual(last, { status: "rejected", reason });
      await executor.files.write("go", ".");
      assert.deepEqual(await kit.within("wait()", started.wait()), { exitCode: 6 });
    },
  },
  {
    name: "a pending write rejects with the reason for the program's end: its signal's or a restart",
    needs,
    async run(kit) {
      const executor = await kit.create();
      const controller = new AbortController();
      const aborted = await startReading(kit, executor, untilGo, controller.signal);
      const stopped = await startReading(kit, executor, untilGo);
      for (const each of [aborted, stopped]) each.wait().catch(() => {});
      const [first, second] = [writeOn(aborted), writeOn(stopped)];
      const reason = new Error("changed my mind");
      controller.abort(reason);
      assert.equal(await kit.within("the write", first.failed), reason);
      await kit.within("restart()", executor.restart());
      const error = await kit.within("the write", second.failed);
      assert.ok(ExecutorStoppedError.isInstance(error), String(error));
    },
  },
];
