import { setTimeout as sleep } from "node:timers/promises";
import { type CodeExecutor, hostFunction } from "@fenced/core";
import { byTurns, report } from "../measure.ts";

/** The function that the programs call. */
export const wait = hostFunction({
  name: "wait",
  description: "Waits.",
  input: { type: "object", properties: { ms: { type: "number" } } },
  execute: async ({ ms }: { ms?: unknown }) => {
    if (typeof ms === "number" && ms > 0) await sleep(ms);
    return 1;
  },
});

/** A program that prints the average milliseconds of 200 calls of `wait`. */
const callsCode = `import time
from functions import wait
wait()
started = time.perf_counter()
for _ in range(200):
    wait()
print((time.perf_counter() - started) * 1000 / 200)
`;

/** A program that prints the milliseconds that 20 calls of 50 ms take side by side. */
const sideBySideCode = `import asyncio, threading, time
from functions import wait
wait()
async def main():
    started = time.perf_counter()
    await asyncio.gather(*[wait.aio(ms=50) for _ in range(20)])
    print((time.perf_counter() - started) * 1000)
# A kernel's main thread already runs an event loop.
thread = threading.Thread(target=lambda: asyncio.run(main()))
thread.start()
thread.join()
`;

/** A program that prints the milliseconds of one round trip to a socket that echoes. */
export const rawCallsCode = `import socket, sys, time
echo = socket.socket(socket.AF_UNIX)
echo.connect(sys.argv[1])
echo.sendall(b"x" * 16)
echo.recv(65536)
started = time.perf_counter()
for _ in range(200):
    echo.sendall(b"x" * 16)
    echo.recv(65536)
print((time.perf_counter() - started) * 1000 / 200)
`;

/** The same over standard output and input; the result goes to standard error. */
export const rawPipeCode = `import os, time
os.write(1, b"x" * 16)
os.read(0, 65536)
started = time.perf_counter()
for _ in range(200):
    os.write(1, b"x" * 16)
    os.read(0, 65536)
os.write(2, str((time.perf_counter() - started) * 1000 / 200).encode())
`;

/** A program in a kernel that prints the average milliseconds of 200 lines of `input()`. */
export const rawInputCode = `import time
input()
started = time.perf_counter()
for _ in range(200):
    input()
print((time.perf_counter() - started) * 1000 / 200)
`;

/**
 * Measures calls of `wait`, which the executor must have, and reports them.
 *
 * @param raw - returns the milliseconds of one round trip of the raw floor.
 */
export async function reportCalls(
  title: string,
  {
    executor,
    raw,
    goal,
    sideBySide = "< 100 ms",
  }: { executor: CodeExecutor; raw: () => Promise<number>; goal: string; sideBySide?: string },
): Promise<void> {
  const ours = async (code: string): Promise<number> => {
    const result = await executor.executeCodeBlocks([{ language: "python", code }]);
    if (result.exitCode !== 0) throw new Error(result.output);
    return Number(result.output);
  };
  report(title, [
    { what: "one call", unit: "ms", ...(await byTurns(20, raw, () => ours(callsCode))), goal },
    {
      what: "20 calls of 50 ms side by side",
      unit: "ms",
      ...(await byTurns(
        10,
        async () => 50,
        () => ours(sideBySideCode),
      )),
      goal: sideBySide,
    },
  ]);
}
