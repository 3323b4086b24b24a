import assert from "node:assert/strict";
import { type HostFunction, hostFunction } from "@fenced/core";
import type { ConformanceCase } from "../conformance-case.ts";
import { hostFunctionsIn, specialFiles, startsProcesses, stateful, stdin } from "../needs.ts";
import { add, offersAdd } from "./hostile-host-calls.ts";

const inPython = [stateful, hostFunctionsIn("python")];
const python = (code: string) => ({ language: "python", code });

/**
 * Where variables persist, so do imported functions, threads and connections; nevertheless, each block has its own
 * calls.
 */
export const hostCallsInSessions: readonly ConformanceCase[] = [
  {
    name: "imported in one block can be called in the next, which has its own limit of calls",
    needs: inPython,
    async run(kit) {
      const executor = await kit.create({ functions: [add()], maxHostCalls: 2 });
      await kit.succeed(
        executor,
        python("from functions import add, HostFunctionError\nprint(add(1, 2), add(3, 4))\n"),
      );
      const code = `print(add(5, 6), add(7, 8))
try:
    add(0, 0)
except HostFunctionError as error:
    print(error.name)
`;
      assert.equal((await kit.succeed(executor, python(code))).output, "11 15\nHostCallLimitError\n");
    },
  },
  {
    name: "of one call cannot be called or imported in the next",
    needs: inPython,
    async run(kit) {
      const executor = await kit.create();
      const whoami: HostFunction = hostFunction({
        name: "whoami",
        description: "The user.",
        input: { type: "object" },
        execute: () => "Ada",
      });
      const first = python("from functions import whoami\nprint(whoami())\n");
      assert.equal((await kit.succeed(executor, first, { functions: [whoami] })).output, "Ada\n");
      const code = `try:
    print(whoami())
except Exception as error:
    print(error.name)
try:
    import functions
except ImportError as error:
    print("gone")
`;
      assert.equal((await kit.succeed(executor, python(code))).output, "NotConnectedError\ngone\n");
    },
  },
  {
    name: "are still set up when their call is aborted, and the next call waits for that",
    needs: inPython,
    async run(kit) {
      const executor = await kit.create();
      const slow = `import os, time
steps, make = [], os.makedirs
def make_slowly(*given, **named):
    steps.append("begin")
    time.sleep(0.7)
    make(*given, **named)
    steps.append("end")
os.makedirs = make_slowly
`;
      await kit.succeed(executor, python(slow));
      const signal = AbortSignal.timeout(400);
      await assert.rejects(executor.executeCodeBlocks([python("print(1)")], { functions: [add()], signal }));
      const { output } = await kit.succeed(executor, python("print(steps.count('begin') - steps.count('end'))"));
      assert.equal(output, "0\n");
    },
  },
  {
    name: "can be called from threads and child processes while the block reads and prints",
    needs: [...inPython, startsProcesses, stdin],
    async run(kit) {
      const executor = await kit.shared(offersAdd);
      const code = `import subprocess, sys, threading
from functions import add
sums = []
threads = [threading.Thread(target=lambda n=n: sums.append(add(n, n))) for n in range(8)]
[each.start() for each in threads]
print(input(), add(1, 1), input())
[each.join() for each in threads]
print(sorted(sums))
child = "from functions import add; print(add(1, 2))"
print(subprocess.run([sys.executable, "-c", child], check=True, stdout=subprocess.PIPE).stdout)
`;
      const { output } = await kit.succeed(executor, python(code), { stdin: "one\ntwo\n" });
      assert.equal(output, "one 2 two\n[0, 2, 4, 6, 8, 10, 12, 14]\nb'3\\n'\n");
    },
  },
  {
    name: "refuse calls from a thread or a connection that outlived its block",
    needs: [...inPython, specialFiles],
    async run(kit) {
      const executor = await kit.create();
      const code = `import os, socket, struct, threading, time
from functions import add, HostFunctionError
def send(kind, number, payload):
    kept.sendall(struct.pack(">IBI", len(payload) + 5, kind, number) + payload)
kept = socket.socket(socket.AF_UNIX)
kept.connect(os.environ["FENCED_HOST_CALLS"][5:])
send(1, 0, os.environ["FENCED_HOST_TOKEN"].encode())
send(2, 1, b'add\\n{"a": 1, "b": 2}')
print(kept.recv(10)[9:])
said = []
def outlive():
    while "FENCED_HOST_TOKEN" in os.environ:
        time.sleep(0.01)
    try:
        said.append(add(1, 2))
    except HostFunctionError as error:
        said.append(error.name)
late = threading.Thread(target=outlive)
late.start()
`;
      const first = await kit.succeed(executor, python(code), { functions: [add()] });
      assert.equal(first.output, "b'3'\n");
      const later = `late.join()
kept.settimeout(30)
try:
    send(2, 2, b'add\\n{"a": 1, "b": 2}')
    print(kept.recv(10), said)
except ConnectionError:
    print(b"", said)
`;
      const result = await kit.succeed(executor, python(later));
      assert.equal(result.output, "b'' ['NotConnectedError']\n");
    },
  },
];
