import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ExecutorStoppedError, FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { filesElsewhere } from "../needs.ts";
import { MemoryWatch } from "../observe/memory-watch.ts";

const mebibyte = 1_048_576;
const piece = Buffer.alloc(mebibyte, "0123456789abcdef");

/** Content that records how much of it was read. */
class Source {
  pulled = 0;

  stream(pieces: number): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: (stream) => {
          if (this.pulled === pieces) stream.close();
          else stream.enqueue(Uint8Array.from(piece));
          this.pulled += 1;
        },
      },
      { highWaterMark: 0 },
    );
  }
}

const isInvalid = (error: unknown): boolean => InvalidInputError.isInstance(error);

async function readAll(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Files of any size, in pieces, and what can be learned about a file without reading it. */
export const fileStreams: ConformanceGroup = {
  name: "file streams",
  waits: true,
  cases: [
    {
      name: "stat() distinguishes files from directories and returns sizes",
      async run(kit) {
        const { files } = await kit.shared();
        await files.write("dir/ä b.txt", "12345");
        const file = await kit.within("files.stat", files.stat("./dir/ä b.txt"));
        assert.deepEqual([file.path, file.type, file.size], ["dir/ä b.txt", "file", 5]);
        assert.ok(file.modifiedAt === undefined || Math.abs(file.modifiedAt.getTime() - Date.now()) < 86_400_000);
        const directory = await files.stat("dir");
        assert.deepEqual([directory.path, directory.type, directory.size], ["dir", "directory", 0]);
        assert.equal((await files.stat(".")).type, "directory");
        await kit.rejects(FileNotFoundError, "stat", files.stat("dir/missing.txt"));
        await kit.rejects(FileNotFoundError, "stat below a file", files.stat("dir/ä b.txt/below"));
        await kit.rejects(WorkspacePathError, "stat outside", files.stat("../outside"));
      },
    },
    {
      name: "readStream() reads a whole file or any part of it",
      async run(kit) {
        const { files } = await kit.shared();
        const data = Uint8Array.from({ length: 3 * mebibyte + 7 }, (_, index) => (index * 31 + (index >> 8)) & 0xff);
        await files.write("dir/data.bin", data);
        assert.ok((await kit.within("readStream", readAll(files.readStream("dir/data.bin")))).equals(data));
        const last = data.length - 1;
        for (const [start, end] of [
          [0, 0],
          [10, 19],
          [mebibyte - 1, mebibyte],
          [last, last],
          [last - 5, last + 9],
        ] as const) {
          const part = await kit.within("a part", readAll(files.readStream("dir/data.bin", { start, end })));
          assert.ok(part.equals(data.subarray(start, end + 1)), `bytes ${start} to ${end}`);
        }
        const tail = await readAll(files.readStream("dir/data.bin", { start: data.length - 9 }));
        assert.ok(tail.equals(data.subarray(data.length - 9)));
        assert.equal((await readAll(files.readStream("dir/data.bin", { start: data.length }))).length, 0);
        await files.write("empty", "");
        assert.equal((await readAll(files.readStream("empty"))).length, 0);
      },
    },
    {
      name: "readStream() fails like read(), for invalid ranges, and with the reason of its signal",
      async run(kit) {
        const { files } = await kit.shared();
        await files.write("dir/file.bin", Buffer.alloc(2 * mebibyte));
        await kit.rejects(FileNotFoundError, "a missing file", readAll(files.readStream("missing")));
        await kit.rejects(InvalidInputError, "a directory", readAll(files.readStream("dir")));
        await kit.rejects(WorkspacePathError, "outside", readAll(files.readStream("../outside")));
        assert.throws(() => files.readStream("dir/file.bin", { start: 2, end: 1 }), isInvalid);
        assert.throws(() => files.readStream("dir/file.bin", { start: -1 }), isInvalid);
        const reason = new Error("the client has left");
        const controller = new AbortController();
        const reader = files.readStream("dir/file.bin", { signal: controller.signal }).getReader();
        await kit.within("the first piece", reader.read());
        controller.abort(reason);
        await assert.rejects(kit.within("a read after the abort", reader.read()), reason);
      },
    },
    {
      name: "readStream() can be cancelled at any time",
      async run(kit) {
        const { files } = await kit.shared();
        await files.write("file.bin", Buffer.alloc(2 * mebibyte));
        await kit.within("cancel() before the first read", files.readStream("file.bin").cancel());
        for await (const chunk of files.readStream("file.bin")) {
          assert.ok(chunk.length > 0);
          break;
        }
        await kit.within("files.remove", files.remove("file.bin"));
      },
    },
    {
      name: "writeStream() creates or replaces a file, which is complete once the stream is closed",
      async run(kit) {
        const executor = await kit.shared();
        const { files } = executor;
        for (const pieces of [3, 1, 0]) {
          const source = new Source();
          await kit.within("pipeTo", source.stream(pieces).pipeTo(files.writeStream("new dir/made.bin")));
          assert.equal((await files.stat("new dir/made.bin")).size, pieces * mebibyte);
        }
        const writer = files.writeStream("new dir/made.bin").getWriter();
        await kit.within("write", writer.write(Buffer.from("grüße\n")));
        await kit.within("close", writer.close());
        const result = await kit.succeedWith(executor, kit.language.printFile("new dir/made.bin"));
        assert.equal(result.output, "grüße\n");
      },
    },
    {
      name: "writeStream() leaves no part of a file when it is aborted",
      async run(kit) {
        const { files } = await kit.shared();
        const writer = files.writeStream("part.bin").getWriter();
        await kit.within("write", writer.write(piece));
        await kit.within("abort", writer.abort(new Error("the upload broke off")));
        await kit.rejects(FileNotFoundError, "stat", files.stat("part.bin"));
        assert.deepEqual(await files.list(), []);
        await kit.within("abort() before the first write", files.writeStream("none.bin").abort());
        const outside = files.writeStream("../outside").getWriter();
        outside.closed.catch(() => {});
        await kit.rejects(WorkspacePathError, "outside", outside.write(piece));
        const texts = files.writeStream("text").getWriter();
        texts.closed.catch(() => {});
        // @ts-expect-error: JavaScript callers may write text
        await kit.rejects(InvalidInputError, "a text", texts.write("no bytes"));
        assert.deepEqual(await files.list(), []);
      },
    },
    {
      name: "open streams fail with ExecutorStoppedError when the executor stops",
      async run(kit) {
        const executor = await kit.create();
        await executor.files.write("file.bin", Buffer.alloc(2 * mebibyte));
        const reader = executor.files.readStream("file.bin").getReader();
        const writer = executor.files.writeStream("part.bin").getWriter();
        writer.closed.catch(() => {});
        await kit.within("the first piece", reader.read());
        await kit.within("write", writer.write(piece));
        await kit.within("stop()", executor.stop());
        await kit.rejects(ExecutorStoppedError, "the next piece", reader.read());
        await kit.rejects(ExecutorStoppedError, "the next write", writer.write(piece));
      },
    },
    {
      name: "take little memory for a large file, even if its reader is slow",
      needs: [filesElsewhere],
      alone: true,
      async run(kit) {
        const { files } = await kit.create();
        const source = new Source();
        await files.write("warm", "");
        using memory = new MemoryWatch();
        await kit.within("pipeTo", source.stream(32).pipeTo(files.writeStream("large.bin")));
        const reader = files.readStream("large.bin").getReader();
        let length = (await reader.read()).value?.length ?? 0;
        await sleep(300);
        for (;;) {
          const { value, done } = await kit.within("a piece", reader.read());
          if (done) break;
          length += value.length;
        }
        assert.equal(length, 32 * mebibyte);
        const held = memory.peak() / mebibyte;
        assert.ok(held < 24, `this process held ${held.toFixed(1)} MiB more for a file of 32 MiB`);
      },
    },
  ],
};
