import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { KubernetesCommandLineCodeExecutor } from "../../src/index.ts";
import { statesIn } from "./node.ts";

/** Stops the supervisor of its pod, and keeps running. */
const code = `
import os, signal, time
def parent(pid):
    return int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[1])
supervisor = os.getppid()
while parent(supervisor) not in (0, 1):
    supervisor = parent(supervisor)
os.kill(supervisor, signal.SIGSTOP)
time.sleep(600)
`;

/** Stops an executor while a block runs that has stopped the supervisor; returns the error of the block's call. */
export async function stopWithStoppedSupervisor(executor: KubernetesCommandLineCodeExecutor): Promise<unknown> {
  const block = executor.executeCodeBlocks([{ language: "python", code }]).catch(String);
  await expect.poll(() => statesIn(executor.podName ?? ""), { timeout: 60_000 }).toMatch(/^T/m);
  const stopped = executor.stop().then(() => "stopped");
  // An executor that keeps running waits ten seconds for the end of a block.
  expect(await Promise.race([stopped, sleep(9000)])).toBe("stopped");
  return block;
}
