import { writeFile } from "node:fs/promises";
import path from "node:path";
import { blockEnvironment } from "@fenced/executor-kit";
import type { Supervisor } from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { KeptPlace } from "../../support/kept-place.ts";
import { TextSink } from "../../support/text-sink.ts";

async function printed(supervisor: Supervisor, argv: readonly string[], env = blockEnvironment): Promise<string> {
  const output = new TextSink();
  await supervisor.run({ argv, env }, output);
  return output.stdout;
}

describe.skipIf(process.platform !== "linux")("the next program of a session", needs("python3"), () => {
  it("uses no number that something of the last one still has", async () => {
    const place = await KeptPlace.open();
    const hold = path.join(place.workspace, "hold");
    await writeFile(hold, "");
    const first = await place.connect({ first: place.first });
    const leaving = "while [ -e hold ]; do sleep 0.02; done & echo left";
    expect(await printed(first.supervisor, ["sh", "-c", leaving])).toBe("left\n");
    await first.link.detach();
    const { supervisor, link } = await place.connect();
    // What was left running ends while the block runs.
    expect(await printed(supervisor, ["sh", "-c", "rm hold; sleep 0.5; echo one"])).toBe("one\n");
    const stopping = new AbortController();
    const stopped = new TextSink(stopping.signal);
    const running = supervisor.run({ argv: ["sh", "-c", "echo begun; sleep 100"], env: blockEnvironment }, stopped);
    await stopped.begun;
    stopping.abort();
    expect(await running).toMatchObject({ exitCode: 137 });
    await link.end();
    await place.over();
  });

  it("goes on with the interpreter of the session, not with the one that a fork started later", async () => {
    const place = await KeptPlace.open();
    const first = await place.connect({ first: place.first });
    const program = { command: ["python3"], env: { ...blockEnvironment }, commands: "", preload: [] };
    const { signal } = new AbortController();
    const own = await first.supervisor.openInterpreter(program, signal);
    await first.supervisor.openInterpreter({ ...program, isCopy: true }, signal);
    await first.link.detach();
    const { supervisor, link } = await place.connect();
    expect(supervisor.takeInterpreter()?.number).toBe(own.number);
    await link.end();
    await place.over();
  });

  it("resets the connections of programs that live on, and accepts none before it is there", async () => {
    const place = await KeptPlace.open();
    const first = await place.connect({ first: place.first });
    const address = await first.supervisor.openCalls(() => {});
    const log = path.join(place.workspace, "log");
    const code = `
import os, socket, sys
if os.fork(): os._exit(0)
os.setsid()
for _ in range(2):
    there = socket.socket(socket.AF_UNIX)
    there.connect(sys.argv[1])
    try: found = there.recv(1)
    except ConnectionError: found = b""
    with open(sys.argv[2], "ab") as log: log.write(b"end\\n")
`;
    await printed(first.supervisor, ["python3", "-c", code, address.slice("unix:".length), log]);
    const { signal } = new AbortController();
    const program = { command: ["python3"], env: { ...blockEnvironment }, commands: "", preload: [] };
    const interpreter = await first.supervisor.openInterpreter(program, signal);
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const busy = { code: "print(1, flush=True)\nimport time; time.sleep(1)", name: "busy", env: {}, modules: null };
    const write = (): undefined => {
      begin();
    };
    const running = interpreter.run(busy, { signal, write }).catch(() => {});
    await begun;
    const { supervisor, link } = await place.connect({ takeOver: true });
    await running;
    await expect.poll(() => printed(supervisor, ["cat", log])).toBe("end\nend\n");
    await link.end();
    await place.over();
  });
});
