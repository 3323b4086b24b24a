import { setTimeout as sleep } from "node:timers/promises";
import { jupyterPythons, needs, nightly } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { JupyterCodeExecutor, type JupyterExecutorOptions } from "../src/index.ts";
import { remains } from "./support/kept-subject.ts";
import { anyVersion } from "./support/local-server.ts";
import { PlainServer } from "./support/plain-server.ts";

const [version = "jupyter"] = anyVersion;
const python = (code: string) => [{ language: "python", code }];

/** Does something on the helper's own thread. */
const aside = `
import os, struct, threading
from _fenced_kept import join, kept
def soon(work):
    done = threading.Event()
    kept.loop.add_callback(lambda: (work(), done.set()))
    done.wait(10)
def raw(data):
    kept.outgoing += data
    kept.flush()
`;

describe("code that attacks the stream of a session that outlives its program", needs(version), () => {
  let server: PlainServer;
  beforeAll(async () => {
    server = await PlainServer.start(jupyterPythons[version]);
  }, 120_000);
  afterAll(() => server[Symbol.asyncDispose](), 120_000);

  const create = (options: JupyterExecutorOptions = {}): JupyterCodeExecutor =>
    new JupyterCodeExecutor({ server: server.settings, keepAliveMs: 60_000, ...options });

  /** Runs it, and then shows that the executor is fine and leaves nothing. */
  async function attack(code: string) {
    const executor = create({ timeoutMs: 30_000 });
    const result = await executor.executeCodeBlocks(python(aside + code));
    const next = await executor.executeCodeBlocks(python("print('fine')"));
    expect(next.output).toBe("fine\n");
    await executor.stop();
    await expect.poll(() => remains(server), { timeout: 60_000 }).toEqual([]);
    return result;
  }

  it.each([
    ["messages that are none", "soon(lambda: [kept.emit(os.urandom(n)) for n in range(0, 4000, 7)])\nprint('sent')"],
    [
      "offsets that lead elsewhere",
      "soon(lambda: kept.emit(struct.pack('<6Q', 5, 0, 1 << 60, 3, 1 << 63, 7) * 3))\nprint('sent')",
    ],
    ["parts that are not JSON", "soon(lambda: kept.emit(join([b'iopub', b'{', b'[', b'1', b'}'])))\nprint('sent')"],
    ["answers that nobody asked for", "soon(lambda: kept.tell('fenced_reply', {'msg_id': 'x'}, {}))\nprint('sent')"],
  ])("can send %s", async (_, code) => {
    expect(await attack(code)).toMatchObject({ exitCode: 0, output: "sent\n" });
  });

  it.each([
    ["a length that never comes", "soon(lambda: raw(struct.pack('>I', 0xFFFFFFFF)))"],
    ["half a message", "soon(lambda: raw(struct.pack('>I', 1000) + b'x'))"],
    ["nothing more", "kept.emit = lambda message: None"],
    ["the end of its stream", "soon(lambda: kept.stream.close())"],
  ])("loses its kernel if it sends %s", nightly, async (_, code) => {
    const result = await attack(`${code}\nimport time\ntime.sleep(600)`);
    expect(result.exitCode).not.toBe(0);
    expect(result.stateLost).toBe(true);
  });

  it("loses nothing if it ends the way to its keeper", async () => {
    const code = "soon(lambda: [kept.links.drop(each) for each in list(kept.links.all.values())])\nprint('sent')";
    expect(await attack(code)).toMatchObject({ exitCode: 0, output: "sent\n", stateLost: false });
  });

  it("cannot make this program hold more than it should", nightly, async () => {
    const executor = create();
    const flood = `${aside}
kept.is_full = lambda: False
for _ in range(3000):
    print("x" * 99_999)`;
    const before = process.memoryUsage().rss;
    let highest = 0;
    const follow = async (): Promise<void> => {
      for await (const event of executor.streamCodeBlocks(python(flood))) {
        highest = Math.max(highest, process.memoryUsage().rss);
        if (event.type === "stdout") await sleep(50);
      }
    };
    // It may lose its kernel for that.
    await follow().catch(() => {});
    expect(highest - before).toBeLessThan(400_000_000);
    await executor.stop();
    await expect.poll(() => remains(server), { timeout: 60_000 }).toEqual([]);
  });
});
