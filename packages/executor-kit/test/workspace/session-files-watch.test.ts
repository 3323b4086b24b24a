import { type FileEvent, InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { ScriptedExecutor } from "../support/scripted-executor.ts";

describe("files.watch()", () => {
  it("leaves out the executor's own files, and ends with an event that is the last", async () => {
    await using executor = new ScriptedExecutor({
      async *watch({ path, recursive }) {
        expect({ path, recursive }).toEqual({ path: "dir/sub", recursive: true });
        yield undefined;
        yield { type: "create", path: ".fenced-1.part" };
        yield { type: "create", path: "file.txt" };
      },
    });
    await executor.start();
    expect(executor.capabilities.files).toContain("watch");
    const seen: FileEvent[] = [];
    for await (const event of executor.files.watch("dir/./sub/", { recursive: true })) seen.push(event);
    expect(seen).toEqual([
      { type: "start", path: "dir/sub" },
      { type: "create", path: "file.txt" },
    ]);
  });

  it("watches at most 64 directories at once, and any number one after another", async () => {
    let open = 0;
    await using executor = new ScriptedExecutor({
      async *watch() {
        open += 1;
        try {
          for (;;) yield undefined;
        } finally {
          open -= 1;
        }
      },
    });
    const watched = Array.from({ length: 64 }, () => executor.files.watch("."));
    await Promise.all(watched.map((events) => events.next()));
    await expect(executor.files.watch(".").next()).rejects.toThrow(/More than 64 directories/);
    await watched[0]?.return();
    const last = executor.files.watch(".");
    await last.next();
    expect(open).toBe(64);
    await Promise.all([...watched, last].map((events) => events.return()));
    expect(open).toBe(0);
  });

  it("ends with its signal, and with stop(), even if the place does not answer any more", async () => {
    const never = new Promise<never>(() => {});
    await using executor = new ScriptedExecutor({
      async *watch() {
        yield undefined;
        await never;
      },
    });
    const controller = new AbortController();
    const events = executor.files.watch(".", { signal: controller.signal });
    await events.next();
    const rest = events.next();
    controller.abort();
    expect(await rest).toEqual({ done: true, value: undefined });
    const others = executor.files.watch(".");
    await others.next();
    const stopped = others.next();
    await executor.stop();
    expect(await stopped).toEqual({ done: true, value: undefined });
  });

  it("is refused where directories cannot be watched, and with wrong options", async () => {
    await using executor = new ScriptedExecutor();
    await expect(executor.files.watch(".").next()).rejects.toBeInstanceOf(InvalidInputError);
    // @ts-expect-error -- as JavaScript callers may
    expect(() => executor.files.watch(".", { recurse: true })).toThrow(/unknown option "recurse"/);
  });
});
