import assert from "node:assert/strict";
import { type HostCallContext, type HostFunction, hostFunction, type JsonObject } from "@fenced/core";
import type { ConformanceCase } from "../conformance-case.ts";
import { hostFunctionsIn, processes } from "../needs.ts";
import { deferred } from "../observe/deferred.ts";
import { followStream } from "../observe/follow-stream.ts";
import { withDoubledTime } from "../observe/until-running.ts";
import { add, assertCallable, offersAdd } from "./hostile-host-calls.ts";

const inPython = [hostFunctionsIn("python")];
const python = (code: string) => ({ language: "python", code });

const text = (execute: (value: string, count: number) => unknown): HostFunction =>
  hostFunction({
    name: "text",
    description: "Takes or gives text.",
    input: { type: "object", properties: { value: { type: "string" }, count: { type: "integer" } } },
    execute: ({ value, count }: JsonObject) => execute(typeof value === "string" ? value : "", Number(count ?? 0)),
  });

/**
 * Runs a coroutine in its own thread, because an event loop may already be running in the main thread of a session that
 * keeps variables. Without threads, that is not the case.
 */
const runInLoop = `import asyncio, threading
def run_in_loop(main):
    results = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(main())))
    try:
        thread.start()
    except RuntimeError:
        return asyncio.run(main())
    thread.join()
    return results[0]
`;

/** A function that never returns, and reports when it was called and when its signal was aborted. */
function endless() {
  const called = deferred<HostCallContext>();
  const aborted = deferred();
  const execute = (_: unknown, context: HostCallContext): Promise<never> => {
    context.signal.addEventListener("abort", () => aborted.resolve());
    called.resolve(context);
    return new Promise(() => {});
  };
  const made = hostFunction({ name: "endless", description: "Never returns.", input: { type: "object" }, execute });
  return { function: made, called: called.promise, aborted: aborted.promise };
}

/** Large values, many calls, and every way in which a call can end. */
export const hostCallsUnderStress: readonly ConformanceCase[] = [
  {
    name: "accept arguments up to 1 MiB and 50,000 values, and results up to 4 MiB; beyond that, an exception suggests a file",
    needs: inPython,
    async run(kit) {
      const executor = await kit.shared(offersAdd);
      const functions = [text((value, count) => (count > 0 ? "x".repeat(count) : value.length))];
      const code = `from functions import text, HostFunctionError
print(text(value="x" * (1048576 - len('{"value": ""}'))))
print(len(text(count=4194304 - 2)))
for arguments in ({"value": "x" * 1048576}, {"value": [0] * 50_000}, {"count": 4194304}):
    try:
        text(**arguments)
    except HostFunctionError as error:
        print(error.name, "file" in str(error))
`;
      const { output } = await kit.succeed(executor, python(code), { functions });
      assert.equal(output, `${1_048_576 - 13}\n4194302\n${"HostCallLimitError True\n".repeat(3)}`);
    },
  },
  {
    name: "run concurrently, 32 at a time, and each call gets its own answer",
    needs: inPython,
    async run(kit) {
      let [running, most] = [0, 0];
      const full = deferred();
      const slow = hostFunction({
        name: "slow",
        description: "Waits for 31 others.",
        input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
        execute: async ({ number }) => {
          running += 1;
          most = Math.max(most, running);
          if (running === 32) full.resolve();
          await full.promise;
          running -= 1;
          return number;
        },
      });
      const executor = await kit.shared(offersAdd);
      const code = `${runInLoop}
from functions import slow
async def main():
    return await asyncio.gather(*[slow.aio(number) for number in range(48)])
print(run_in_loop(main) == list(range(48)))
`;
      assert.equal((await kit.succeed(executor, python(code), { functions: [slow] })).output, "True\n");
      assert.equal(most, 32);
    },
  },
  {
    name: "raise an exception after `maxHostCalls` calls in a block; the next block counts from zero",
    needs: inPython,
    async run(kit) {
      const executor = await kit.create({ functions: [add()], maxHostCalls: 2 });
      const code = `from functions import add, HostFunctionError
print(add(1, 1), add(1, 2))
try:
    add(1, 3)
except HostFunctionError as error:
    print(error.name)
`;
      const result = await kit.succeed(executor, [python(code), python(code)]);
      assert.equal(result.output, "2 3\nHostCallLimitError\n".repeat(2));
    },
  },
  {
    name: "are aborted when the executor's call is aborted",
    needs: inPython,
    async run(kit) {
      const forever = endless();
      const executor = await kit.create({ functions: [forever.function, add()] });
      const controller = new AbortController();
      const block = python("from functions import endless\nendless()\n");
      const run = executor.executeCodeBlocks([block], { signal: controller.signal });
      const rejected = assert.rejects(kit.within("the aborted call", run), { message: "enough" });
      await kit.within("the host call", forever.called);
      controller.abort(new Error("enough"));
      await kit.within("the abort of the function", forever.aborted);
      await rejected;
      await assertCallable(kit, executor);
    },
  },
  {
    name: "are aborted when the block times out, and the stream has one result event for the call",
    needs: inPython,
    async run(kit) {
      const forever = endless();
      const executor = await kit.create({ functions: [forever.function, add()] });
      // Keeps the set-up, which comes with the first call, out of the block's time.
      await assertCallable(kit, executor);
      const block = python("from functions import endless\nendless()\n");
      const { followed } = await withDoubledTime(kit, 3000, async (timeoutMs) => {
        const stream = followStream(executor.streamCodeBlocks([block], { timeoutMs }));
        assert.equal((await kit.within("the call", stream.result)).timedOut, true);
        return { wasEnough: stream.events.some(({ type }) => type === "host-call"), followed: stream };
      });
      await kit.within("the abort of the function", forever.aborted);
      const ends = followed.events.flatMap((event) => (event.type === "host-result" ? [event.error?.name] : []));
      assert.equal(ends.length, 1);
      await assertCallable(kit, executor);
    },
  },
  {
    name: "are aborted when the program ends, which does not wait for them",
    needs: [...inPython, processes],
    async run(kit) {
      const forever = endless();
      const executor = await kit.create({ functions: [forever.function, add()] });
      const code = `import os, threading
from functions import add, endless
threading.Thread(target=endless, daemon=True).start()
# Behind it on the same connection.
print(add(1, 2), flush=True)
os._exit(7)
`;
      const result = await kit.run(executor, python(code));
      assert.deepEqual([result.exitCode, result.output], [7, "3\n"]);
      await kit.within("the abort of the function", forever.aborted);
      await assertCallable(kit, executor);
    },
  },
  {
    name: "are aborted when a task gives up on them, and other calls still work",
    needs: inPython,
    async run(kit) {
      const forever = endless();
      // Gives up only on what has begun.
      const begun = hostFunction({
        name: "begun",
        description: "Waits until the other function was called.",
        input: { type: "object" },
        execute: () => forever.called.then(() => null),
      });
      const executor = await kit.create({ functions: [forever.function, begun, add()] });
      const code = `${runInLoop}
from functions import add, begun, endless
async def main():
    task = asyncio.ensure_future(endless.aio())
    await begun.aio()
    try:
        await asyncio.wait_for(task, 0.2)
    except asyncio.TimeoutError:
        print("gave up", await add.aio(1, 2))
run_in_loop(main)
`;
      assert.equal((await kit.succeed(executor, python(code))).output, "gave up 3\n");
      await kit.within("the abort of the function", forever.aborted);
    },
  },
  {
    name: "can be called from threads, subprocesses and forks",
    needs: [...inPython, processes],
    async run(kit) {
      const executor = await kit.shared(offersAdd);
      const code = `import os, subprocess, sys, threading
from functions import add
add(0, 0)
sums = []
threads = [threading.Thread(target=lambda n=n: sums.append(add(n, n))) for n in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
print(sorted(sums), flush=True)
child = "from functions import add; print(add(1, 2))"
subprocess.run([sys.executable, "-c", child], check=True)
subprocess.run([sys.executable, "-c", child], check=True, start_new_session=True)
if os.fork() == 0:
    print(add(3, 4), flush=True)
    os._exit(0)
os.wait()
print(add(5, 6))
`;
      const { output } = await kit.succeed(executor, python(code));
      assert.equal(output, "[0, 2, 4, 6, 8, 10, 12, 14]\n3\n3\n7\n11\n");
    },
  },
  {
    name: "work whatever a program prints or reads, even after it closes all its file descriptors",
    needs: [...inPython, processes],
    async run(kit) {
      const executor = await kit.shared(offersAdd);
      const code = `import os, sys
from functions import add
print(add(1, 1), sys.stdin.readline().strip(), flush=True)
for number in (1, 2):
    os.write(number, bytes(range(256)) * 16 + b'{"type": "result", "id": 1}\\n')
os.closerange(3, 4096)
print(add(1, 2), flush=True)
os.closerange(3, 4096)
held = [os.open(os.devnull, os.O_RDWR) for _ in range(64)]
print(add(1, 3), flush=True)
`;
      const result = await kit.succeed(executor, python(code), { stdin: "input\n" });
      assert.match(result.stdout, /^2 input\n/);
      assert.match(result.stdout, /\n3\n4\n$/);
    },
  },
];
