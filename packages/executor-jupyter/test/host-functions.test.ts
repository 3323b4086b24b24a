import { hostFunction, type JsonObject } from "@fenced/core";
import { backend, needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { JupyterCodeExecutor } from "../src/index.ts";
import { sharedServer } from "./support/local-server.ts";
import { bash, python } from "./support/python.ts";
import { TlsProxy } from "./support/tls-proxy.ts";

const patience = { timeout: 120_000 };
const version = backend("jupyter2").available ? "jupyter2" : "jupyter";

const add = hostFunction({
  name: "add",
  description: "Adds.",
  input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  execute: ({ a, b }: JsonObject) => Number(a) + Number(b),
});

/** Prints a call's result, or the name of its error. */
const callAndTell = `
from functions import add, HostFunctionError
try:
    print(add(20, 22))
except HostFunctionError as error:
    print(error.name)
`;
/** Sends messages in place of the helper. `send` takes frames and the count of messages received. */
const forge = `
import struct, threading
import _fenced_calls as calls
bridge, done = calls.bridge, threading.Event()
def send(frames, taken=None):
    bridge.host({"generation": bridge.generation, "taken": bridge.received if taken is None else taken}, [frames])
def soon(work):
    bridge.loop.add_callback(lambda: (work(), done.set()))
    done.wait(30)
def frame(kind, number, payload=b""):
    return struct.pack(">IBI", len(payload) + 5, kind, number) + payload
`;

describe("host functions in a kernel", needs(version), () => {
  const { executor: create, address } = sharedServer(version);

  it("can be awaited in a cell between calls of input(), and called from a shell", patience, async () => {
    await using executor = create({ functions: [add] });
    const code = `import asyncio
from functions import add
print(input(), await asyncio.gather(*[add.aio(n, 1) for n in range(20)]), input())
`;
    const first = await executor.executeCodeBlocks([python(code)], { stdin: "one\ntwo\n" });
    expect(first.output).toBe(
      `one ${JSON.stringify(Array.from({ length: 20 }, (_, n) => n + 1)).replaceAll(",", ", ")} two\n`,
    );
    const second = await executor.executeCodeBlocks([bash(`functions add '{"a": 1, "b": 2}' | cat\n`)]);
    expect(second.output).toBe("3\n");
    expect(executor.capabilities.hostFunctions).toEqual(executor.capabilities.languages);
  });

  it("are available again in a kernel that replaces another", patience, async () => {
    await using executor = create({ functions: [add] });
    await executor.executeCodeBlocks([python(callAndTell)]);
    const ended = await executor.executeCodeBlocks([python(`import os\n${callAndTell}\nos._exit(1)`)]);
    expect(ended).toMatchObject({ exitCode: 1, stateLost: true });
    expect((await executor.executeCodeBlocks([python(callAndTell)])).output).toBe("42\n");
  });

  describe("forged messages end connections, and the next call has new ones:", () => {
    it.each([
      ["bytes that are not frames", "soon(lambda: send(b'\\xff' * 1000))"],
      ["a frame of another kind", "soon(lambda: send(frame(17, 1, b'x')))"],
      ["a frame with too short a payload", "soon(lambda: send(frame(22, 7) + frame(25, 7, b'')))"],
      ["counts of messages that were never sent", "soon(lambda: send(frame(22, 7), 10 ** 9))"],
      ["more messages than requested", "soon(lambda: [send(frame(22, 7)) for _ in range(100)])"],
    ])("%s", patience, async (_, attack) => {
      await using executor = create({ functions: [add] });
      const result = await executor.executeCodeBlocks([python(`${callAndTell}${forge}${attack}\n`)]);
      expect(result).toMatchObject({ exitCode: 0, output: "42\n" });
      const answers = await executor.executeCodeBlocks([python(callAndTell)], { timeoutMs: 20_000 });
      expect(answers.output).toBe("42\n");
    });
  });

  it("a flood of connections does not keep calls from working after restart()", patience, async () => {
    await using executor = create({ functions: [add] });
    const attack = "soon(lambda: send(b''.join(frame(22, n) for n in range(100, 50100))))";
    await executor.executeCodeBlocks([python(`${callAndTell}${forge}${attack}\n`)]);
    await executor.restart();
    expect((await executor.executeCodeBlocks([python(callAndTell)])).output).toBe("42\n");
  });

  it("a helper that no longer answers costs only the block's time", patience, async () => {
    await using executor = create({ functions: [add] });
    await executor.executeCodeBlocks([python(callAndTell)]);
    const code = `import _fenced_calls\n_fenced_calls.Bridge.take = lambda *_: None\n${callAndTell}`;
    const result = await executor.executeCodeBlocks([python(code)], { timeoutMs: 2000 });
    expect(result).toMatchObject({ timedOut: true });
    expect(result.durationMs).toBeLessThan(20_000);
    await executor.restart();
    expect((await executor.executeCodeBlocks([python(callAndTell)])).output).toBe("42\n");
  });

  describe("when the connection to the server breaks", needs("openssl"), () => {
    let proxy: TlsProxy | undefined;
    beforeAll(async () => {
      const { baseUrl, headers } = await address();
      proxy = await TlsProxy.start(new URL(baseUrl), headers);
    });
    afterAll(() => proxy?.[Symbol.asyncDispose]());

    it("a running call fails, is aborted on the host, and can be made again", patience, async () => {
      let abort = (): void => {};
      const aborted = new Promise<void>((resolve) => {
        abort = resolve;
      });
      const breaking = hostFunction({
        name: "breaking",
        description: "Breaks the connection.",
        input: { type: "object" },
        execute: (_, { signal }) => {
          signal.addEventListener("abort", abort);
          proxy?.breakConnections();
          return new Promise(() => {});
        },
      });
      const server = { baseUrl: proxy?.baseUrl ?? "", ca: proxy?.ca ?? "" };
      await using executor = new JupyterCodeExecutor({ server, functions: [add, breaking] });
      const code = `from functions import breaking, HostFunctionError
try:
    breaking()
except HostFunctionError as error:
    print(error.name)
${callAndTell}`;
      const result = await executor.executeCodeBlocks([python(code)]);
      await aborted;
      expect(result.output).toBe("NotConnectedError\n42\n");
    });
  });
});
