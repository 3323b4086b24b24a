import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { PassThrough } from "node:stream";
import { setTimeout } from "node:timers/promises";
import type { Supervisor } from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { KeptPlace } from "../support/kept-place.ts";

type Order = Parameters<Supervisor["runs"]["submit"]>[0];
/** An entry of a run's log, as text. */
interface Entry {
  readonly number: number;
  readonly kind: string;
  readonly text: string;
  readonly size: number;
}

const never = 3_600_000;

/** A run of one Python program for each block. */
function order(supervisor: Supervisor, programs: readonly string[], given: Partial<Order> = {}): Order {
  const steps = programs.map((code) => ({ main: supervisor.framesOf({ argv: ["python3", "-c", code], env: {} }) }));
  const identity = { id: randomUUID(), uuid: randomUUID(), content: "content" };
  const limits = { room: 1_048_576, totalTimeoutMs: never, timeoutMs: never };
  const sentences = { memorySentence: "", busErrorSentence: "" };
  return { ...identity, ...limits, ...sentences, record: Buffer.from("{}"), waits: false, steps, ...given };
}

async function entriesOf(supervisor: Supervisor, number: number): Promise<Entry[]> {
  const found: Entry[] = [];
  for await (const { number: at, kind, content } of supervisor.runs.follow(number)) {
    found.push({ number: at, kind, text: content.toString(), size: content.length });
  }
  return found;
}

function textOf(entries: readonly Entry[]): string {
  return entries.map(({ kind, text }) => (kind === "o" || kind === "e" ? text : "")).join("");
}

async function memoryOf(pid: number): Promise<number> {
  return Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

describe("runs that the supervisor works through", { ...needs("python3"), timeout: 120_000 }, () => {
  it("never divide a character, whatever divides the output", async () => {
    const place = await KeptPlace.open();
    const { supervisor } = await place.connect({ first: place.first });
    const text = "aä€😀".repeat(20);
    const code = `import os, time
for byte in ${JSON.stringify(text)}.encode():
    os.write(1, bytes([byte]))
    time.sleep(0.001)
os.write(2, b"\\xf0\\x9f")`;
    const number = await supervisor.runs.submit(order(supervisor, [code]));
    const entries = await entriesOf(supervisor, number);
    expect(textOf(entries.filter(({ kind }) => kind === "o"))).toBe(text);
    expect(textOf(entries.filter(({ kind }) => kind === "e"))).toBe("\uFFFD");
    expect(entries.filter(({ kind }) => kind === "o").every((each) => !each.text.includes("\uFFFD"))).toBe(true);
    expect(entries.map((each) => each.number)).toEqual(entries.map((_, index) => index));
  });

  it("stay within their bounds when code prints tiny pieces, and text that looks like frames", async () => {
    const place = await KeptPlace.open();
    const { supervisor, answer } = await place.connect({ first: place.first });
    const code = `import os
for _ in range(60000):
    os.write(1, b"\\0\\0\\0\\x0e\\x13\\0\\0\\0\\x01.")
    os.write(2, b"x")`;
    const given = { room: 65_536 };
    const before = await memoryOf(answer.inventory.process);
    const run = await supervisor.runs.submit(order(supervisor, [code, code], given));
    const live = await entriesOf(supervisor, run);
    const later = await entriesOf(supervisor, run);
    expect(await memoryOf(answer.inventory.process)).toBeLessThan(before + 33_554_432);
    for (const entries of [live, later]) {
      expect(entries.filter(({ kind }) => kind === "x").map(({ text }) => text.split(" ")[0])).toEqual(["0", "0"]);
      expect(entries.at(-1)?.kind).toBe(".");
    }
    expect(later.some(({ kind }) => kind === "g")).toBe(true);
    // What both have is the same, and what is missing is counted.
    const known = new Map(live.map((each) => [each.number, each]));
    const shared = later.filter(({ number, kind }) => kind !== "g" && (known.get(number)?.kind ?? "g") !== "g");
    expect(shared).toEqual(shared.map(({ number }) => known.get(number)));
    const gaps = later.flatMap(({ kind, number, text }, index) =>
      kind === "g" ? [{ counted: Number(text.split(" ")[0]), missing: number - (later[index - 1]?.number ?? 0) }] : [],
    );
    expect(gaps.map(({ counted }) => counted)).toEqual(gaps.map(({ missing }) => missing));
    const kept = later.reduce((sum, { size }) => sum + size + 100, 0);
    expect(kept).toBeLessThan(4 * given.room + 65_536);
  });

  it("say how much text is missing, also before what is no text", async () => {
    const place = await KeptPlace.open();
    const { supervisor } = await place.connect({ first: place.first });
    const code = `import os, time
os.write(1, b"x" * 1_600_000)
while not os.path.exists("go"):
    time.sleep(0.01)
os.write(1, b"y" * 530_000)`;
    const run = await supervisor.runs.submit(order(supervisor, [code]));
    let seen = 0;
    let isNoted = false;
    for await (const { kind, content } of supervisor.runs.follow(run)) {
      // A reader that is slow is told how much it has missed.
      if (kind === "o") seen += content.length;
      else if (kind === "g") seen = Math.max(seen, Number(content.toString().split(" ")[1]));
      if (seen < 1_600_000 || isNoted) continue;
      isNoted = true;
      await supervisor.runs.note(run, "a note");
      await writeFile(path.join(place.workspace, "go"), "");
    }
    let counted = 0;
    for (const { kind, text, size } of await entriesOf(supervisor, run)) {
      if (kind === "o") counted += size;
      else if (kind === "g") counted = Math.max(counted, Number(text.split(" ")[1]));
    }
    expect([seen, counted]).toEqual([2_130_000, 2_130_000]);
  });

  it("are refused while those that have not ended take all the room, and remembered when they are forgotten", async () => {
    const place = await KeptPlace.open();
    const { supervisor } = await place.connect({ first: place.first });
    const sleep = "import time\ntime.sleep(3600)";
    const large = { room: 16_777_216 };
    const submit = (programs: readonly string[], given?: Partial<Order>): Promise<number> =>
      supervisor.runs.submit(order(supervisor, programs, given));
    const sleeping = [await submit([sleep], large), await submit([sleep], large), await submit([sleep], large)];
    await expect(submit([sleep], large)).rejects.toThrow("no room for another run");
    for (const number of sleeping) supervisor.runs.cancel(number);
    for (const number of sleeping) expect((await entriesOf(supervisor, number)).at(-1)?.text).toMatch(/^cancelled/);
    for (let count = 0; count < 110; count += 1) {
      const number = await supervisor.runs.submit({
        ...order(supervisor, []),
        id: `run ${count}`,
        steps: [{ say: "no" }],
      });
      await entriesOf(supervisor, number);
    }
    const { runs, forgotten } = await supervisor.runs.list();
    expect(runs.length).toBe(100);
    expect(runs.at(-1)?.id).toBe("run 109");
    expect(forgotten.get("run 3")).toBe("content");
    await expect(entriesOf(supervisor, sleeping[0] ?? 0)).rejects.toMatchObject({ code: "run_not_found" });
    await expect(submit([sleep], { id: "run 3" })).rejects.toThrow("submitted to this session before");
    await expect(submit([sleep], { id: "run 109" })).rejects.toThrow("submitted to this session before");
  });

  it("begin only when all of them has arrived, and their numbers are not used again", async () => {
    const place = await KeptPlace.open();
    const first = await place.connect({ first: place.first });
    const whole = await first.supervisor.runs.submit(order(first.supervisor, ["import time\ntime.sleep(3600)"]));
    const half = first.supervisor.runs.submit(
      order(first.supervisor, ["print(1)"], { record: Buffer.alloc(3_000_000) }),
    );
    half.catch(() => {});
    const second = await place.connect({ takeOver: true });
    first.supervisor.fail(new Error("replaced"));
    const { runs } = await second.supervisor.runs.list();
    expect(runs[0]).toMatchObject({ number: whole, state: "running" });
    const numbers = new Set(runs.map(({ number }) => number));
    const later = await second.supervisor.runs.submit(order(second.supervisor, ["print(2)"]));
    expect(numbers.has(later)).toBe(false);
    expect(later).toBeGreaterThan(whole);
    expect(textOf(await entriesOf(second.supervisor, later))).toBe("2\n");
    second.supervisor.runs.cancel(whole);
    expect((await entriesOf(second.supervisor, whole)).at(-1)?.text).toMatch(/^cancelled/);
  });

  it("keep the calls of their blocks for a host, and no more than there is room for", async () => {
    const place = await KeptPlace.open();
    const { supervisor, answer } = await place.connect({ first: place.first });
    const address = await supervisor.openCalls((connection) => connection.destroy());
    const token = randomUUID();
    const code = `import os, socket, struct, time
def frame(kind, number, payload):
    return struct.pack(">IBI", len(payload) + 5, kind, number) + payload
def connect(token):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(0.05)
    connection.connect(${JSON.stringify(address.slice("unix:".length))})
    connection.sendall(frame(1, 0, token))
    return connection
first = connect(b"${token}")
first.sendall(frame(2, 7, b"first\\n{}"))
time.sleep(1)
kept = []
for number in range(40):
    try:
        connection = connect(b"${token}" if number % 2 else b"another")
        for call in range(1, 60):
            connection.sendall(frame(2, call, b"call\\n" + b" " * 1000000))
        kept.append(connection)
    except OSError:
        pass
print("attacked", flush=True)
first.settimeout(60)
print(first.recv(1000)[9:].decode())`;
    const before = await memoryOf(answer.inventory.process);
    const number = await supervisor.runs.submit(order(supervisor, [code], { tokens: [token] }));
    const calls: string[] = [];
    const entries: Entry[] = [];
    for await (const { number: at, kind, content } of supervisor.runs.follow(number)) {
      entries.push({ number: at, kind, text: content.toString(), size: content.length });
      if (!content.toString().startsWith("attacked")) continue;
      expect(await memoryOf(answer.inventory.process)).toBeLessThan(before + 50_331_648);
      supervisor.runs.serve(number, 0, ({ payload, begin, answer: reply }) => {
        calls.push(payload.toString().slice(0, 5));
        begin();
        reply(16, Buffer.from("answered"));
      });
    }
    expect(textOf(entries)).toBe("attacked\nanswered\n");
    expect(calls[0]).toBe("first");
  });

  it("answer the calls of the block that runs now, and of nobody else", async () => {
    const place = await KeptPlace.open();
    const { supervisor } = await place.connect({ first: place.first });
    let strangers = 0;
    const address = await supervisor.openCalls((connection) => {
      strangers += 1;
      connection.destroy();
    });
    const [over, now] = [randomUUID(), randomUUID()];
    const other = `${now.slice(0, -1)}${now.endsWith("0") ? "1" : "0"}`;
    const code = `import socket, struct
def frame(kind, number, payload):
    return struct.pack(">IBI", len(payload) + 5, kind, number) + payload
for token in (b"${over}", b"${other}", b"${now}"[:-1], b"${now} ", b"", "\xfc".encode() * 18, b"${now}"):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(${JSON.stringify(address.slice("unix:".length))})
    try:
        connection.sendall(frame(1, 0, token) + frame(2, 1, b"call\\n{}"))
        print(connection.recv(1000)[9:].decode())
    except OSError:
        print()`;
    const number = await supervisor.runs.submit(order(supervisor, ["", code], { tokens: [over, now] }));
    const stop = supervisor.runs.serve(number, 1, ({ begin, answer }) => {
      begin();
      answer(16, Buffer.from("answered"));
    });
    expect(textOf(await entriesOf(supervisor, number))).toBe(`${"\n".repeat(6)}answered\n`);
    expect(strangers).toBe(6);
    stop();
  });

  it("do not say that a block waited for a program while one answers its other calls", async () => {
    const place = await KeptPlace.open();
    const { supervisor } = await place.connect({ first: place.first });
    const address = await supervisor.openCalls((connection) => connection.destroy());
    const token = randomUUID();
    const code = `import socket, struct
def frame(kind, number, payload):
    return struct.pack(">IBI", len(payload) + 5, kind, number) + payload
connection = socket.socket(socket.AF_UNIX)
connection.connect(${JSON.stringify(address.slice("unix:".length))})
connection.sendall(frame(1, 0, b"${token}") + frame(2, 1, b"call\\n{}") + frame(2, 2, b"call\\n{}"))
connection.recv(1000)`;
    let [calls, text] = [0, "none"];
    // How long it takes until the block calls depends on the machine.
    for (let timeoutMs = 2000; calls < 2 && timeoutMs < 60_000; timeoutMs *= 2) {
      const number = await supervisor.runs.submit(order(supervisor, [code], { tokens: [token], timeoutMs }));
      calls = 0;
      supervisor.runs.serve(number, 0, ({ begin }) => {
        // As if there was only one turn.
        if (calls === 0) begin();
        calls += 1;
      });
      text = textOf(await entriesOf(supervisor, number));
    }
    expect(text).toBe("");
    expect(calls).toBe(2);
  });

  it("do not claim for a block the connections of another one", async () => {
    const late = "import os, socket, time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\n";
    // How long it takes until the blocks run depends on the machine: the time of both must not be up before one asks.
    for (let timeoutMs = 3000; ; timeoutMs *= 2) {
      const place = await KeptPlace.open(120_000);
      const first = await place.connect({ first: place.first });
      const { port } = await first.supervisor.openNetwork((connection) => connection.destroy());
      const ask = `asking = socket.create_connection(("127.0.0.1", ${port}))\nopen("asked", "w").close()\nasking.recv(1)`;
      const submittedAt = Date.now();
      // The one that asks must still be there when the time of the other one is up.
      const limits: readonly (readonly [code: string, timeoutMs: number])[] = [
        [`${late}${ask}`, timeoutMs * 2],
        [`${late}time.sleep(600)`, timeoutMs],
      ];
      const runs = limits.map(([code, limitMs]) =>
        first.supervisor.runs.submit(order(first.supervisor, [code], { timeoutMs: limitMs })),
      );
      const numbers = await Promise.all(runs);
      await first.link.detach();
      await writeFile(path.join(place.workspace, "go"), "");
      const wasLeftInTime = Date.now() - submittedAt < timeoutMs;
      await setTimeout(timeoutMs * 2 + 1000);
      const second = await place.connect();
      const texts = await Promise.all(
        numbers.map(async (number) => textOf(await entriesOf(second.supervisor, number))),
      );
      const asked = await stat(path.join(place.workspace, "asked")).catch(() => undefined);
      const hasAskedInTime = asked !== undefined && asked.mtimeMs - submittedAt < timeoutMs;
      if (!(wasLeftInTime && hasAskedInTime) && timeoutMs < 12_000) continue;
      for (const text of texts) {
        expect(text).toMatch(/may have been waiting for the network: no program was connected/);
      }
      return;
    }
  });

  it("go on in another program although a block no longer reads answers to its calls", async () => {
    const place = await KeptPlace.open();
    const first = await place.connect({ first: place.first });
    const address = await first.supervisor.openCalls((connection) => connection.destroy());
    const token = randomUUID();
    const code = `import os, socket, struct, time
def frame(kind, number, payload):
    return struct.pack(">IBI", len(payload) + 5, kind, number) + payload
connection = socket.socket(socket.AF_UNIX)
connection.connect(${JSON.stringify(address.slice("unix:".length))})
connection.sendall(frame(1, 0, b"${token}") + frame(2, 1, b"call\\n{}") + frame(2, 2, b"call\\n{}"))
connection.shutdown(socket.SHUT_RD)
while not os.path.exists("go"):
    time.sleep(0.01)
print("goes on")`;
    const run = await first.supervisor.runs.submit(order(first.supervisor, [code], { tokens: [token] }));
    const begun = new Promise<void>((resolve) => {
      let count = 0;
      first.supervisor.runs.serve(run, 0, ({ begin }) => {
        begin();
        count += 1;
        if (count === 2) resolve();
      });
    });
    await begun;
    await first.supervisor.runs.list();
    const second = await place.connect({ takeOver: true });
    first.supervisor.fail(new Error("replaced"));
    await writeFile(path.join(place.workspace, "go"), "");
    expect(textOf(await entriesOf(second.supervisor, run))).toBe("goes on\n");
  });

  it("end with the processes of the place when that is reset", async () => {
    const place = await KeptPlace.open();
    const { supervisor } = await place.connect({ first: place.first });
    const number = await supervisor.runs.submit(order(supervisor, ["import time\ntime.sleep(3600)", "print('never')"]));
    await supervisor.reset();
    const entries = await entriesOf(supervisor, number);
    expect(textOf(entries)).toBe("");
    expect(entries.at(-1)?.text).toMatch(/^stopped/);
    await supervisor.runs.note(number, "too late");
    // The failure is no event, and neither is what comes after the end.
    expect((await supervisor.runs.list()).runs[0]?.lastSeq).toBe(entries.at(-2)?.number);
  });

  it("are sent once to a reader that was slow, however late its pause arrives", async () => {
    const place = await KeptPlace.open();
    const late = new PassThrough();
    const leaves = once(late, "leave");
    late.on("data", (chunk: Buffer) => {
      if (/\0{3}\n.{5}leave/s.test(chunk.toString("latin1"))) late.emit("leave");
      void setTimeout(100).then(() => place.first.stdin.write(chunk));
    });
    const { supervisor } = await place.connect({ first: { ...place.first, stdin: late } });
    const code = `import os, time
os.write(1, b"x" * 6_000_000)
for number in range(100):
    os.write(1, b"<%d>" % number)
    time.sleep(0.005)`;
    const number = await supervisor.runs.submit(order(supervisor, [code], { room: 16_777_216 }));
    const seen: number[] = [];
    for await (const entry of supervisor.runs.follow(number)) {
      if (entry.number === 2) await leaves;
      seen.push(entry.number);
    }
    expect(seen).toEqual(seen.map((_, index) => index));
  });
});
