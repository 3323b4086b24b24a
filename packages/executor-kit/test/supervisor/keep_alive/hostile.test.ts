import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { BackendUnavailableError, SessionInUseError } from "@fenced/core";
import { blockEnvironment } from "@fenced/executor-kit";
import { SessionLink } from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { shakeHands } from "../../../src/supervisor/keep_alive/handshake.ts";
import { encodeGreeting, linkMagic, packetKind, verdict } from "../../../src/supervisor/keep_alive/packets.ts";
import { type Change, KeptPlace, type Program, relayed, type Streams } from "../../support/kept-place.ts";
import { TextSink } from "../../support/text-sink.ts";

const python = promisify(execFile);

async function printed({ supervisor }: Program, ...argv: string[]): Promise<string> {
  const output = new TextSink();
  await supervisor.run({ argv, env: blockEnvironment }, output);
  return output.stdout;
}

/** What the kernel says about a process, in bytes or as it is. */
async function status(pid: number | undefined, name: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1]) * 1024;
}

/** The process that is the server: the shell has become it. */
async function descriptors(place: KeptPlace): Promise<number> {
  return (await readdir(`/proc/${place.server.pid}/fd`)).length;
}

/** Runs a program that attacks the session as others of this user can, until the test ends. */
async function attacker(place: KeptPlace, code: string): Promise<void> {
  const begin = "import array, os, socket, sys, time\n";
  const child = spawn("python3", ["-c", `${begin}${code}`, place.name], { stdio: "pipe" });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  await once(child.stdout, "data");
}

const connecting = `
def connect():
    there = socket.socket(socket.AF_UNIX)
    there.connect("\\0" + sys.argv[1])
    return there
def give(there, *descriptors):
    there.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))])
`;

describe.skipIf(process.platform !== "linux")("a session under attack", needs("python3"), () => {
  it("lets its program in while others hold and take every place", async () => {
    const place = await KeptPlace.open(60_000);
    const { link } = await place.connect({ first: place.first });
    await link.detach();
    const flood = `${connecting}
held, parent = [], os.getpid()
for n in range(6):
    if os.fork() == 0:
        while os.getppid() == parent:
            try:
                there = connect()
                one, other = socket.socketpair()
                if n % 3: give(there, other.fileno(), other.fileno())
                if n % 3 == 2: one.send(os.urandom(65000))
                held.append((there, one, other))
                del held[:-8]
            except OSError:
                time.sleep(0.01)
        os._exit(0)
print("begun", flush=True)
time.sleep(1000)
`;
    await attacker(place, flood);
    const again = await place.connect();
    expect(await printed(again, "echo", "in")).toBe("in\n");
    await again.link.end();
    await place.over();
  });

  it("is not stopped by descriptors that somebody makes wait, and refuses files and networks", async () => {
    const place = await KeptPlace.open(60_000);
    const first = await place.connect({ first: place.first });
    const code = `${connecting}
import threading
held = []
def try_all():
    for make in (lambda: os.open("/dev/zero", os.O_RDWR), lambda: os.open("/", os.O_PATH), lambda: socket.socket().detach()):
        there = connect()
        given = make()
        give(there, given, given)
        held.append(there)
    # Its reader waits with them.
    reading, writing = os.pipe()
    give(connect(), reading, writing)
    held.append(connect())
    time.sleep(0.3)
    os.set_blocking(reading, True)
    def steal():
        while True: os.read(reading, 1)
    for _ in range(4): threading.Thread(target=steal, daemon=True).start()
    print("begun", flush=True)
    while True: os.write(writing, b"x")
try_all()
`;
    await attacker(place, code);
    for (let round = 0; round < 20; round += 1) {
      expect(await printed(first, "echo", "here")).toBe("here\n");
    }
    await first.link.end();
    await place.over();
  });

  it("is neither ended nor cut off by alarms that others of its user send it", async () => {
    const place = await KeptPlace.open(60_000);
    let connections = 0;
    const connect = (): Promise<Streams> => {
      connections += 1;
      return Promise.resolve(place.attach());
    };
    const first = await place.connect({ first: place.first, connect });
    const code = `
import signal
print("begun", flush=True)
while True: os.kill(${place.server.pid}, signal.SIGALRM)
`;
    for (let count = 0; count < 2; count += 1) await attacker(place, code);
    const output = "x".repeat(4_000_000);
    for (let round = 0; round < 5; round += 1) {
      expect((await printed(first, "python3", "-c", `print("x" * ${output.length}, end="")`)) === output).toBe(true);
    }
    expect(connections).toBe(0);
    await first.link.end();
    await place.over();
  });

  it("keeps nothing of a thousand connections, wherever they end", async () => {
    const place = await KeptPlace.open(60_000);
    const first = await place.connect({ first: place.first });
    await printed(first, "true");
    const before = await descriptors(place);
    const greeting = encodeGreeting({
      program: Buffer.alloc(16, 7),
      nonce: Buffer.alloc(16),
      takeOver: true,
      isKnown: false,
      received: 0,
    });
    const said = Buffer.concat([linkMagic, greeting, Buffer.alloc(32)]).toString("hex");
    const code = `import array, os, socket, sys, time
${connecting}
said = bytes.fromhex(sys.argv[2])
for n in range(1000):
    one, other = socket.socketpair()
    there = connect()
    if n % 4: give(there, other.fileno(), other.fileno())
    other.close()
    try: one.send(said[: n % (len(said) + 1)])
    except OSError: pass
    one.close()
    there.close()
`;
    await python("python3", ["-c", code, place.name, said]);
    await expect.poll(() => descriptors(place), { timeout: 60_000 }).toBe(before);
    expect(await printed(first, "echo", "still")).toBe("still\n");
    await first.link.end();
    await place.over();
  });

  it("takes nothing that was forged, changed, repeated or sent back", async () => {
    const place = await KeptPlace.open(60_000);
    const first = await place.connect({ first: place.first });
    await first.link.detach();
    const recorded: Buffer[] = [];
    let flip = 0;
    /** Changes a bit of a chunk, one chunk further with each connection. */
    const flipping = (): Change => {
      let chunk = 0;
      const at = (flip += 1);
      return (bytes) => {
        chunk += 1;
        if (flip > 12 || chunk !== Math.ceil(at / 2)) return bytes;
        const changed = Buffer.from(bytes);
        const middle = changed.length >> 1;
        changed[middle] = (changed[middle] ?? 0) ^ 1;
        return changed;
      };
    };
    const record: Change = (bytes) => {
      recorded.push(Buffer.from(bytes));
      return bytes;
    };
    const { link, supervisor, answer } = await place.connect({
      connect: () => {
        const streams = place.attach();
        if (recorded.length === 0) return Promise.resolve(relayed(streams, { up: record, down: flippingAfter(3) }));
        return Promise.resolve(relayed(streams, { up: flipping(), down: flipping() }));
      },
    });
    const program = { link, supervisor, answer };
    for (let round = 0; round < 20; round += 1) {
      expect(await printed(program, "echo", String(round))).toBe(`${round}\n`);
    }
    // The same bytes again, as a whole, are not the program.
    const replayed = place.attach();
    replayed.stdin.write(Buffer.concat(recorded));
    const end = once(replayed.stdout, "end");
    replayed.stdout.resume();
    await end;
    // Nor is what the session says.
    const mirror = { stdin: new PassThrough(), stdout: new PassThrough() };
    mirror.stdin.on("data", (bytes: Buffer) => mirror.stdout.write(Buffer.concat([bytes, bytes])));
    const caller = { key: place.key, program: Buffer.alloc(16), takeOver: true, isKnown: false, received: 0 };
    await expect(shakeHands(mirror, caller)).rejects.toThrow(BackendUnavailableError);
    // The wrong key.
    await expect(place.link({ key: Buffer.alloc(32), takeOver: true })).rejects.toThrow(BackendUnavailableError);
    expect(await printed(program, "echo", "still")).toBe("still\n");
    expect(link.isReplaced).toBe(false);
    await link.end();
    await place.over();
  });

  it("holds a bounded amount for a program that reads nothing, and goes on when another one comes", async () => {
    const place = await KeptPlace.open(60_000);
    const key = place.key;
    const caller = {
      key,
      program: Buffer.alloc(16, 1),
      keepAliveMs: 60_000,
      takeOver: false,
      isKnown: false,
      received: 0,
    };
    const answer = await shakeHands(place.first, caller);
    expect(answer.verdict).toBe(verdict.accepted);
    const before = await status(place.server.pid, "VmRSS");
    // It asks for signs of life and for output, and reads neither.
    const { stdin, stdout } = place.first;
    stdout.pause();
    const ping = (): boolean => stdin.write(answer.writer.packet(packetKind.ping, 0));
    for (let count = 0; count < 20_000; count += 1) ping();
    // For a supervisor that does not read: the bytes are no frames, and there are too many for it.
    const noise = Buffer.alloc(262_144);
    for (let count = 0; count < 20; count += 1) stdin.write(answer.writer.packet(packetKind.data, 0, noise));
    await sleep(500);
    expect((await status(place.server.pid, "VmRSS")) - before).toBeLessThan(16_000_000);
    await expect(place.link()).rejects.toThrow(SessionInUseError);
    stdin.destroy();
    stdout.destroy();
    const next = await place.connect({ takeOver: true });
    expect(await printed(next, "echo", "next")).toBe("next\n");
    await next.link.end();
    await place.over();
  });

  it("does nothing that a replaced program says late", async () => {
    const place = await KeptPlace.open(60_000);
    const held: Buffer[] = [];
    let isHeld = false;
    const up: Change = (bytes) => {
      if (!isHeld) return bytes;
      held.push(Buffer.from(bytes));
      return Buffer.alloc(0);
    };
    const first = await place.connect({ first: relayed(place.first, { up }) });
    isHeld = true;
    const late = printed(first, "touch", "late");
    // It rejects while this test does something else.
    late.catch(() => {});
    const next = await place.connect({ takeOver: true });
    place.first.stdin.write(Buffer.concat(held));
    await expect(late).rejects.toThrow("Another program has taken this session over");
    expect(first.link.isReplaced).toBe(true);
    expect(await printed(next, "ls")).toBe("");
    await next.link.end();
    await place.over();
  });
});

describe.skipIf(process.platform !== "linux")("a session that is none", needs("python3"), () => {
  const silent = (): Streams => ({ stdin: new PassThrough().resume(), stdout: new PassThrough() });
  const access = { key: Buffer.alloc(32, 1), keepAliveMs: 1000, takeOver: false };

  it("that floods is refused", async () => {
    const streams = silent();
    const { signal } = new AbortController();
    const opening = openLink(streams, signal);
    const flood = setInterval(() => streams.stdout.push(Buffer.alloc(65_536, "x")), 1);
    onTestFinished(() => clearInterval(flood));
    await expect(opening).rejects.toThrow("The session did not answer");
    expect(streams.stdout.destroyed).toBe(true);
  });

  it("that never answers can be given up", async () => {
    const streams = silent();
    const leaving = new AbortController();
    const opening = openLink(streams, leaving.signal);
    leaving.abort(new Error("given up"));
    await expect(opening).rejects.toThrow("given up");
    expect(streams.stdin.destroyed && streams.stdout.destroyed).toBe(true);
  });

  it("that does not come back can be given up at any moment", async () => {
    const place = await KeptPlace.open(60_000);
    const signals: AbortSignal[] = [];
    const opened: Streams[] = [];
    let open: (streams: Streams) => void = () => {};
    let answer: () => Promise<Streams> = () =>
      new Promise((resolve) => {
        open = resolve;
      });
    const connect = (signal: AbortSignal): Promise<Streams> => {
      signals.push(signal);
      return answer();
    };
    const first = relayed(place.first, {});
    const link = await place.link({ first, connect });
    first.stdout.destroy();
    await expect.poll(() => signals.length).toBe(1);
    expect(link.isCut).toBe(true);
    await link.detach();
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
    // It comes too late.
    const late = silent();
    open(late);
    await expect.poll(() => late.stdin.destroyed && late.stdout.destroyed).toBe(true);

    answer = () => {
      const streams = place.attach();
      opened.push(streams);
      return Promise.resolve(opened.length === 1 ? streams : silentAfter(opened));
    };
    const other = await place.link({ connect, takeOver: true });
    opened[0]?.stdin.destroy();
    opened[0]?.stdout.destroy();
    await expect.poll(() => opened.length).toBe(3);
    await other.end();
    const last = opened.at(-1);
    await expect.poll(() => last?.stdin.destroyed === true && last.stdout.destroyed).toBe(true);
  });

  /** A connection on which nothing answers. */
  function silentAfter(opened: Streams[]): Streams {
    const streams = silent();
    opened.push(streams);
    return streams;
  }

  async function openLink(first: Streams, signal: AbortSignal): Promise<void> {
    const connect = (): Promise<Streams> => Promise.reject(new Error("not reached"));
    await SessionLink.open({ ...access, first, signal, connect });
  }
});

/** Changes a bit of the chunk after so many. */
function flippingAfter(count: number): Change {
  let chunk = 0;
  return (bytes) => {
    chunk += 1;
    if (chunk !== count) return bytes;
    const changed = Buffer.from(bytes);
    changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 128;
    return changed;
  };
}
