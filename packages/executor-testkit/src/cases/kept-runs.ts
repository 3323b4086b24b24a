import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import {
  type CodeBlock,
  hostFunction,
  type HostFunction,
  InvalidInputError,
  type RunEvent,
  type SubmittedRun,
} from "@fenced/core";
import { z } from "zod";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { hostFunctionsIn, keepsRuns, language, stateful } from "../needs.ts";
import { assertStopped, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { HostProgram } from "../observe/host-program.ts";
import { connect, detach, handOver, keepAliveMs, reportedHandle, start } from "../observe/kept-session.ts";
import { PlayedHost } from "../observe/play-host.ts";
import { eventsOf } from "../observe/run-events.ts";
import { withDoubledTime } from "../observe/until-running.ts";
import { fetching, inPython, policy, python } from "./network-credentials.ts";

const needs = [keepsRuns];
/** How long a block takes that ends while no program is connected, in milliseconds. */
const aloneMs = 700;

function textOf(events: readonly RunEvent[]): string {
  return events.map(({ event }) => ("text" in event ? event.text : "")).join("");
}

function isEventOf(report: unknown, id: string): report is RunEvent & { readonly type: string; readonly id: string } {
  return (
    typeof report === "object" &&
    report !== null &&
    "type" in report &&
    report.type === "event" &&
    "id" in report &&
    report.id === id
  );
}

const survives: ConformanceCase = {
  name: "goes on after kill -9, and another program reads the same events and the result",
  needs,
  async run(kit) {
    const { language: code } = kit;
    const id = "order 42/\u00E4";
    const blocks: CodeBlock[] = [
      code.program(code.print("one"), code.sleep(aloneMs), code.print("two")),
      code.program(code.writeFile("ran.txt", "ran"), code.print("three")),
    ];
    const temporary = await kit.directory();
    const request = { options: { keepAliveMs }, calls: [], submissions: [{ id, blocks }], temporary };
    await using host = new HostProgram(kit, { ...request, end: "wait" });
    await host.until(
      "the first block prints",
      () => host.reports.some((each) => isEventOf(each, id) && textOf([each]).includes("one")) || undefined,
    );
    await host.kill("SIGKILL");
    const executor = await connect(kit, reportedHandle(host.reports));
    assert.equal(executor.capabilities.keepsRuns, true);
    assert.deepEqual(
      executor.runs().map((run) => run.id),
      [id],
    );
    const run = executor.run(id);
    const again = await executor.submit(blocks, { id });
    assert.equal(again, run);
    const result = await kit.within("the result", run.result());
    assert.equal(result.output, "one\ntwo\nthree\n");
    assert.equal(run.state, "finished");
    const events = await eventsOf(kit, run);
    assert.equal(textOf(events), "one\ntwo\nthree\n");
    assert.deepEqual(events.at(-1)?.event, { type: "result", result });
    assert.equal(run.lastSeq, events.at(-1)?.seq);
    const seen = host.reports.filter((each) => isEventOf(each, id)).map(({ seq, event }) => ({ seq, event }));
    assert.deepEqual(events.slice(0, seen.length), seen);
    assert.ok(host.reports.some((each) => JSON.stringify(each).includes(JSON.stringify(run.uuid))));
    assert.deepEqual(await eventsOf(kit, run, events[2]?.seq), events.slice(3));

    // A third program finds what has ended; it is not executed again.
    await executor.files.remove("ran.txt");
    const third = await handOver(kit, executor);
    assert.equal(third.run(id).state, "finished");
    const same = await kit.within("submit()", third.submit(blocks, { id }));
    assert.deepEqual(await kit.within("the result", same.result()), result);
    assert.deepEqual(await eventsOf(kit, third.run(id)), events);
    assert.deepEqual(await kit.paths(third), []);
    const other = third.submit([code.program(code.nothing())], { id });
    await kit.rejects(InvalidInputError, "submit() of other code under a used id", other);
  },
};

const fails: ConformanceCase = {
  name: "stops after a block that fails while no program is connected",
  needs,
  async run(kit) {
    const { language: code } = kit;
    const first = await start(kit);
    const run = await first.submit([
      code.program(code.sleep(aloneMs), code.print("one")),
      code.program(code.print("two"), code.exit(3)),
      code.program(code.writeFile("third.txt", "."), code.print("three")),
    ]);
    const second = await handOver(kit, first);
    const result = await kit.within("the result", second.run(run.id).result());
    assert.equal(result.exitCode, 3);
    assert.equal(result.blocks.length, 2);
    assert.equal(result.output, "one\ntwo\n");
    assert.deepEqual(await kit.paths(second), []);
    const named = { language: "no such language", code: "x" };
    const refused = await second.submit([code.program(code.nothing()), named]);
    const plain = await kit.run(second, [code.program(code.nothing()), named]);
    assert.equal((await kit.within("the result", refused.result())).output, plain.output);
  },
};

const timesOut: ConformanceCase = {
  name: "has its time limits while no program is connected",
  needs,
  async run(kit) {
    const { language: code } = kit;
    // It must begin before its time is up.
    const { second } = await withDoubledTime(kit, 6 * aloneMs, async (timeoutMs) => {
      const first = await start(kit);
      const beats = code.program(code.writeFile("main", "."), code.beat("main"));
      const run = await first.submit([beats], { timeoutMs });
      const sleeps = [code.program(code.sleep(600_000)), code.program(code.nothing())];
      const total = await first.submit(sleeps, { totalTimeoutMs: timeoutMs });
      const later = await handOver(kit, first);
      for (const { id } of [run, total]) {
        const result = await kit.within("the result", later.run(id).result());
        assert.equal(result.timedOut, true);
        assert.equal(result.exitCode, 124);
      }
      return { wasEnough: ((await workspaceHeartbeat(later, "main").count()) ?? 0) > 0, second: later };
    });
    await assertStopped(workspaceHeartbeat(second, "main"));
    assert.equal((await kit.succeedWith(second, code.print("goes on"))).output, "goes on\n");
  },
};

const bounded: ConformanceCase = {
  name: "never waits for a program, and keeps the head and the tail of what it prints",
  needs,
  async run(kit) {
    const { language: code } = kit;
    const first = await start(kit, { maxOutputBytes: 1000 });
    const flood = code.fill("x", 8_388_608);
    const run = await first.submit([code.program(code.print("begins"), flood, code.print("ends"))]);
    const second = await handOver(kit, first);
    const result = await kit.within("the result", second.run(run.id).result());
    assert.equal(result.exitCode, 0);
    assert.equal(result.truncated, true);
    assert.ok(result.output.startsWith("begins\nxxx"), result.output.slice(0, 40));
    assert.ok(result.output.endsWith("xxxends\n"), result.output.slice(-40));
    assert.ok(result.output.length < 2000, String(result.output.length));
    const events = await eventsOf(kit, second.run(run.id));
    const gap = events.find(({ event }) => event.type === "gap");
    assert.ok(gap?.event.type === "gap" && gap.event.events > 0);
    const before = events[events.indexOf(gap) - 1]?.seq ?? 0;
    assert.equal(gap.seq - before, gap.event.events);
    assert.ok(textOf(events).endsWith("xends\n"));
  },
};

const limitsFiles: ConformanceCase = {
  name: "has its limit on the work directory while no program is connected",
  needs: [keepsRuns, language("python")],
  async run(kit) {
    const first = await start(kit, { maxWorkspaceBytes: 4_194_304 });
    const code = `import time
print("begins", flush=True)
time.sleep(${aloneMs / 1000})
with open("large", "wb") as file:
    while True:
        file.write(bytes(65536))
        file.flush()
        time.sleep(0.002)`;
    const run = await first.submit([
      { language: "python", code: "with open('small', 'w') as file:\n    file.write('.')" },
      { language: "python", code },
    ]);
    const second = await handOver(kit, first);
    const result = await kit.within("the result", second.run(run.id).result());
    assert.equal(result.exitCode, 153);
    assert.equal(result.timedOut, false);
    assert.match(result.output, /^begins\n\nThe program was killed: .* exceed the limit of 4 MiB/);
  },
};

const cancels: ConformanceCase = {
  name: "outlives a program that is cut off, and ends when another one cancels it",
  needs,
  async run(kit) {
    const { language: code } = kit;
    const first = await start(kit);
    const run = await first.submit([code.program(code.writeFile("main", "."), code.print("runs"), code.beat("main"))]);
    for await (const { event } of run.events()) if ("text" in event) break;
    const second = await connect(kit, first.handle, { takeOver: true });
    await assert.rejects(kit.within("the result where it was cut off", run.result()));
    const followed = second.run(run.id);
    assert.equal(followed.state, "running");
    await kit.within("cancel()", followed.cancel());
    await assert.rejects(followed.result(), { name: "AbortError" });
    assert.equal(followed.state, "failed");
    await assertStopped(workspaceHeartbeat(second, "main"));
    const third = await handOver(kit, second);
    assert.equal(third.run(run.id).state, "failed");
    await assert.rejects(kit.within("the result", third.run(run.id).result()), { name: "AbortError" });
    assert.equal((await kit.succeedWith(third, code.print("goes on"))).output, "goes on\n");
  },
};

const keepsOrder: ConformanceCase = {
  name: "has its turn in a stateful session, with the variables and after the runs before it",
  needs: [keepsRuns, stateful, language("python")],
  async run(kit) {
    const first = await start(kit);
    await kit.succeed(first, python("steps = ['call']"));
    const sleep = aloneMs / 1000;
    const slow = await first.submit([python(`import time\ntime.sleep(${sleep})\nsteps.append('slow')\nsteps`)]);
    const ends = await first.submit([python("import os\nos._exit(0)"), python("steps = ['again']\nsteps")]);
    const last = await first.submit([python("steps.append('last')\nsteps")]);
    const second = await handOver(kit, first);
    const output = async ({ id }: SubmittedRun): Promise<string> =>
      (await kit.within("the result", second.run(id).result())).output;
    const after = kit.succeed(second, python("steps"));
    assert.equal(await output(slow), "['call', 'slow']\n");
    assert.equal(await output(ends), "['again']\n");
    assert.equal((await second.run(ends.id).result()).stateLost, true);
    assert.equal(await output(last), "['again', 'last']\n");
    assert.equal((await after).output, "['again', 'last']\n");
    const { displays } = await second.run(last.id).result();
    const shown = second.capabilities.displays ? [{ "text/plain": "['again', 'last']" }] : [];
    assert.deepEqual(
      displays.map(({ data }) => data),
      shown,
    );
  },
};

const waitsForFunctions: ConformanceCase = {
  name: "waits with its host calls for a program that has the functions, and none is begun twice",
  needs: [keepsRuns, hostFunctionsIn("python")],
  async run(kit) {
    const begun: string[] = [];
    const who = (answer: string): HostFunction =>
      hostFunction({
        name: "who",
        description: "Says who answers.",
        input: z.object({}),
        execute: () => {
          begun.push(answer);
          return answer === "first" && begun.length > 1 ? new Promise<string>(() => {}) : answer;
        },
      });
    const first = await start(kit, { functions: [who("first")] });
    const code = `from functions import HostFunctionError, who
print(who(), flush=True)
try:
    who()
except HostFunctionError as error:
    print(error.name, flush=True)
print(who(), flush=True)`;
    const blocks = [{ language: "python", code }];
    const run = await first.submit(blocks);
    await kit.eventually("the second call is in progress", () => begun[1]);
    const second = await handOver(kit, first);
    await kit.eventually("the third call waits", () => second.run(run.id).lastSeq > run.lastSeq || undefined);
    const third = await handOver(kit, second, { functions: [who("third")] });
    const result = await kit.within("the result", third.run(run.id).result());
    assert.equal(result.output, "first\nHostLostError\nthird\n");
    assert.deepEqual(begun, ["first", "first", "third"]);
    const events = await eventsOf(kit, third.run(run.id));
    const calls = events.filter(({ event }) => event.type === "host-call" || event.type === "host-result");
    assert.deepEqual(
      calls.map(({ event }) => event.type),
      ["host-call", "host-result", "host-call", "host-call", "host-result"],
    );
  },
};

const waitsForGiven: ConformanceCase = {
  name: "gets the host functions of its submission again when it is submitted again",
  needs: [keepsRuns, hostFunctionsIn("python")],
  async run(kit) {
    const late = (answer: string): HostFunction =>
      hostFunction({ name: "late", description: "Says who.", input: z.object({}), execute: () => answer });
    const { output } = await withDoubledTime(kit, aloneMs, async (milliseconds) => {
      const first = await start(kit);
      const calls = `import time\ntime.sleep(${milliseconds / 1000})\nfrom functions import late\nprint(late())`;
      const blocks = [python(calls)];
      const { id } = await first.submit(blocks, { functions: [late("first")] });
      const second = await handOver(kit, first);
      const run = await second.submit(blocks, { id, functions: [late("second")] });
      const result = await kit.within("the result", run.result());
      // The first program may have left too late.
      return { wasEnough: result.output !== "first\n", output: result.output };
    });
    assert.equal(output, "second\n");
  },
};

const reportsRefusals: ConformanceCase = {
  name: "reports what the network policy refused to every program",
  needs: [keepsRuns, ...inPython],
  async run(kit) {
    const network = policy();
    const first = await start(kit, { network });
    const run = await first.submit([python(fetching("http://evil.example/"))]);
    const result = await kit.within("the result", run.result());
    assert.deepEqual(
      result.network?.map(({ host }) => host),
      ["evil.example"],
    );
    const second = await handOver(kit, first, { network });
    assert.deepEqual(await kit.within("the result", second.run(run.id).result()), result);
  },
};

const waitsForTheNetwork: ConformanceCase = {
  name: "waits with its connections for a program while none is connected",
  needs: [keepsRuns, ...inPython],
  async run(kit) {
    await using host = await PlayedHost.http((_request, response) => void response.end("answered"));
    const network = policy();
    const first = await start(kit, { network });
    const late = `import time\ntime.sleep(${aloneMs / 1000})\n`;
    const run = await first.submit([
      // What is refused as soon as a program has connected is reported, too.
      python(`${late}${fetching("http://evil.example/")}${fetching(`http://good.example:${host.port}/`)}`),
    ]);
    for await (const { event } of run.events()) if (event.type === "block-start") break;
    const { handle } = first;
    await detach(kit, first);
    await delay(3 * aloneMs);
    const second = await connect(kit, handle, { network });
    const result = await kit.within("the result", second.run(run.id).result());
    assert.match(result.output, /^403 [^]*\nanswered\n$/);
    assert.deepEqual(
      result.network?.map(({ host: name }) => name),
      ["evil.example"],
    );
  },
};

const saysWhatItWaitedFor: ConformanceCase = {
  name: "says that it waited for a program if its time limit ends it",
  needs: [keepsRuns, ...inPython, hostFunctionsIn("python")],
  async run(kit) {
    const ask = hostFunction({ name: "ask", description: "Answers.", input: z.object({}), execute: () => "answer" });
    const network = policy();
    const says = /waiting for host functions and the network: no program was connected/;
    const { result } = await withDoubledTime(kit, 12 * aloneMs, async (timeoutMs) => {
      const first = await start(kit, { network, functions: [ask] });
      const wait = `time.sleep(${timeoutMs / 12_000})`;
      const late = `import threading, time, urllib.request\nfrom functions import ask\nprint("begun", flush=True)\n${wait}\n`;
      const asks = "threading.Thread(target=ask, daemon=True).start()\n";
      const run = await first.submit([python(`${late}${asks}${fetching("http://good.example/")}`)], { timeoutMs });
      // What a slow machine needs long for is done, or it was not in time.
      for await (const { event } of run.events()) if ("text" in event || event.type === "block-end") break;
      const { handle } = first;
      await detach(kit, first);
      await delay(timeoutMs + aloneMs);
      const second = await connect(kit, handle, { network, functions: [ask] });
      const ended = await kit.within("the result", second.run(run.id).result());
      // The first program may have left too late, or the block may have begun too late.
      const wasEnough = ended.timedOut && says.test(ended.output);
      if (!wasEnough) await kit.within("stop()", second.stop());
      return { wasEnough, result: ended };
    });
    assert.equal(result.timedOut, true);
    assert.match(result.output, says);
  },
};

/** Submitted runs of sessions that outlive their programs. */
export const keptRuns: ConformanceGroup = {
  name: "submitted run of a session that outlives its program",
  cases: [
    survives,
    fails,
    timesOut,
    bounded,
    limitsFiles,
    cancels,
    keepsOrder,
    waitsForFunctions,
    waitsForGiven,
    reportsRefusals,
    waitsForTheNetwork,
    saysWhatItWaitedFor,
  ],
};
