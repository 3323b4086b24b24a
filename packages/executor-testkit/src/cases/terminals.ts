import assert from "node:assert/strict";
import { type CodeExecutor, InvalidInputError, type TerminalProcess } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { hasTerminals, lacksTerminals } from "../needs.ts";
import { assertBeats, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { MemoryWatch } from "../observe/memory-watch.ts";
import { assertFamilyDead, beat, restingSize, textOf, untilGo } from "../observe/started-program.ts";

const needs = [hasTerminals];
const megabyte = 1_048_576;
const size = { columns: 91, rows: 31 };

function open(
  kit: CaseContext,
  executor: CodeExecutor,
  command: string,
  env?: Readonly<Record<string, string>>,
): Promise<TerminalProcess> {
  assert.ok(executor.processes, "an executor with `capabilities.terminals` has `processes`");
  return kit.within("processes.start", executor.processes.start({ command, pty: size, ...(env && { env }) }));
}

/** Writes to a terminal, and to nothing else after that. */
async function type({ stdin }: TerminalProcess, text: string): Promise<void> {
  const writer = stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  writer.releaseLock();
}

/** Reads what a terminal shows until it shows this. */
async function until(kit: CaseContext, reader: ReadableStreamDefaultReader<string>, text: string): Promise<string> {
  let shown = "";
  while (!shown.includes(text)) {
    const { done, value = "" } = await kit.within(`"${text}" on the terminal`, reader.read());
    assert.ok(!done, `the terminal ended with ${JSON.stringify(shown)}`);
    shown += value;
  }
  return shown;
}

const shown = ({ stdout }: TerminalProcess): ReadableStreamDefaultReader<string> =>
  stdout.pipeThrough(new TextDecoderStream()).getReader();

const refused: ConformanceCase = {
  name: "are refused with a sentence where there are none",
  needs: [lacksTerminals],
  async run(kit) {
    const executor = await kit.shared();
    const starting = executor.processes?.start({ command: "tty", pty: size }) ?? Promise.resolve();
    await kit.rejects(InvalidInputError, "start with `pty`", starting, /terminal/);
  },
};

const controlled: ConformanceCase = {
  name: "control their programs, which see a size, a type, keys, and both outputs in order",
  needs,
  async run(kit) {
    const executor = await kit.create({ env: { LEFT: "executor" } });
    const process = await open(
      kit,
      executor,
      'stty size; echo "$TERM $LEFT $(ps -o tty= -p $$ 2>/dev/null | cut -c1-3)"; tty; echo one; echo two >&2; echo three; read line; echo "<$line>"; exit 7',
    );
    assert.ok(process.pid !== undefined && process.pid > 0);
    const reader = shown(process);
    const before = await until(kit, reader, "three\r\n");
    assert.match(before, /^31 91\r\nxterm-256color executor (?:pts)?\r\n\/dev\/pts\/\d+\r\none\r\ntwo\r\nthree\r\n$/);
    await type(process, "grüße\r");
    assert.equal(await until(kit, reader, ">\r\n"), "grüße\r\n<grüße>\r\n");
    assert.equal((await kit.within("the end", reader.read())).done, true);
    assert.equal(await textOf(kit, process.stderr), "");
    assert.deepEqual(await kit.within("wait()", process.wait()), { exitCode: 7 });
    const plain = await open(kit, executor, 'echo "$TERM"', { TERM: "dumb" });
    assert.equal(await textOf(kit, plain.stdout), "dumb\r\n");
  },
};

const keys: ConformanceCase = {
  name: "send signals by keys, and end input by Ctrl-D, not by closing the stream",
  needs,
  async run(kit) {
    const executor = await kit.shared();
    const interrupted = await open(
      kit,
      executor,
      "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done",
    );
    const reader = shown(interrupted);
    await until(kit, reader, "ready");
    await type(interrupted, "\u0003");
    await until(kit, reader, "caught");
    assert.deepEqual(await kit.within("wait()", interrupted.wait()), { exitCode: 5 });
    const cat = await open(kit, executor, "stty -echo; echo ready; cat; echo over");
    const output = shown(cat);
    await until(kit, output, "ready");
    await type(cat, "line\r");
    await until(kit, output, "line\r\n");
    const { stdin } = (await executor.processes?.connect(cat.pid ?? 0)) ?? {};
    await cat.stdin.close();
    await stdin?.getWriter().write(new TextEncoder().encode("another\r\u0004"));
    assert.match(await until(kit, output, "over"), /another\r\n/);
    assert.deepEqual(await kit.within("wait()", cat.wait()), { exitCode: 0 });
  },
};

const resized: ConformanceCase = {
  name: "change their size, and refuse absurd ones",
  needs,
  async run(kit) {
    const executor = await kit.shared();
    const process = await open(kit, executor, "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done");
    const reader = shown(process);
    await until(kit, reader, "ready");
    await process.resize({ columns: 120, rows: 50 });
    await until(kit, reader, "50 120");
    await process.resize({ columns: 65_535, rows: 1 });
    await until(kit, reader, "1 65535");
    for (const wrong of [0, -1, 65_536, 1.5, Number.NaN]) {
      const resizing = process.resize({ columns: wrong, rows: 24 });
      await kit.rejects(InvalidInputError, `resize to ${wrong} columns`, resizing, /columns/);
      const starting = executor.processes?.start({ command: "tty", pty: { columns: 80, rows: wrong } });
      await kit.rejects(InvalidInputError, `start with ${wrong} rows`, starting ?? Promise.resolve(), /rows/);
    }
    await process.kill();
    await process.resize(size);
    const both = executor.processes?.start({ command: "tty", pty: size, stdin: "text" }) ?? Promise.resolve();
    await kit.rejects(InvalidInputError, "start with `pty` and `stdin`", both, /stdin/);
  },
};

const unread: ConformanceCase = {
  name: "make a program wait that floods them, and their user where the program never reads",
  needs,
  async run(kit) {
    const executor = await kit.create();
    await executor.start();
    using memory = new MemoryWatch();
    const flood = await open(
      kit,
      executor,
      "stty raw -echo; while :; do head -c 65536 /dev/zero; printf . >> written; done",
    );
    const written = await restingSize(kit, executor, "written");
    assert.ok(written * 65_536 < 16 * megabyte, `the program wrote ${written} times 64 KiB that nobody read`);
    const writer = flood.stdin.getWriter();
    const typing = writer.write(new Uint8Array(8 * megabyte).fill(120)).catch(() => "refused");
    await kit.within("kill()", flood.kill());
    assert.equal(await kit.within("the write", typing), "refused");
    assert.deepEqual(await kit.within("wait()", flood.wait()), { exitCode: 137 });
    assert.ok(memory.peak() < 48 * megabyte, `${memory.peak()} bytes were kept`);
  },
};

const survivors: ConformanceCase = {
  name: "end with their program, although a grandchild in a group of its own keeps them open",
  needs,
  async run(kit) {
    const executor = await kit.create();
    const left = `trap '' HUP; ${beat("child")}`;
    const process = await open(
      kit,
      executor,
      `set -m; sh -c "${left}" & while [ ! -s child ]; do sleep 0.05; done; echo said; exit 4`,
    );
    assert.match(await textOf(kit, process.stdout), /said\r\n$/);
    assert.deepEqual(await kit.within("wait()", process.wait()), { exitCode: 4 });
    await assertBeats(kit, workspaceHeartbeat(executor, "child"));
    const family = await open(kit, executor, `set -m; sh -c "trap '' HUP; ${beat("orphan")}" & ${beat("main")}`);
    for (const file of ["orphan", "main"]) await assertBeats(kit, workspaceHeartbeat(executor, file));
    await kit.within("kill()", family.kill());
    await kit.within("restart()", executor.restart());
    await assertFamilyDead(executor);
  },
};

const closed: ConformanceCase = {
  name: "can be closed and opened again by their program",
  needs,
  async run(kit) {
    const executor = await kit.create();
    const process = await open(
      kit,
      executor,
      `device=$(tty); exec <&- >&- 2>&-; printf . > closed; ${untilGo}; exec <"$device" >"$device"; echo back; exit 3`,
    );
    await kit.eventually("it has closed it", () => workspaceHeartbeat(executor, "closed").count());
    await executor.files.write("go", ".");
    assert.equal(await textOf(kit, process.stdout), "back\r\n");
    assert.deepEqual(await kit.within("wait()", process.wait()), { exitCode: 3 });
  },
};

/** Programs on terminals. */
export const terminals: ConformanceGroup = {
  name: "terminals",
  waits: true,
  cases: [refused, controlled, keys, resized, unread, survivors, closed],
};
