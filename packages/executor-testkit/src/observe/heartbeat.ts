import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { FileNotFoundError, type CodeExecutor } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";

// Programs beat every 50 ms, so a living one beats within this time even on a busy machine.
const silenceMs = 1000;

/**
 * A file to which a program appends as long as it lives. Works without signals, ids or anything else that depends on
 * the host.
 */
export interface Heartbeat {
  readonly name: string;
  /** How often it has beaten; `undefined` if the file does not exist yet. */
  count(): Promise<number | undefined>;
}

/** A heartbeat in the workspace of an executor. */
export function workspaceHeartbeat(executor: CodeExecutor, file: string): Heartbeat {
  return { name: file, count: async () => (await readIfThere(executor, file))?.length };
}

/** A heartbeat in a file of this host. */
export function hostHeartbeat(path: string): Heartbeat {
  return {
    name: path,
    count: () =>
      stat(path).then(
        ({ size }) => size,
        () => undefined,
      ),
  };
}

/** Asserts that a program is alive. */
export async function assertBeats(kit: CaseContext, heartbeat: Heartbeat): Promise<void> {
  const before = await kit.eventually(`${heartbeat.name} begins to beat`, () => heartbeat.count());
  await kit.eventually(`${heartbeat.name} is alive and keeps beating`, async () =>
    ((await heartbeat.count()) ?? 0) > before ? true : undefined,
  );
}

/** Asserts that a program that was alive is now dead. */
export async function assertStopped(heartbeat: Heartbeat): Promise<void> {
  const before = await heartbeat.count();
  assert.ok(
    before !== undefined,
    `${heartbeat.name} does not exist: its program did not get that far, or the file was lost`,
  );
  assert.ok(before > 0, `${heartbeat.name} never began to beat: the program did not get that far`);
  await sleep(silenceMs);
  assert.equal(
    await heartbeat.count(),
    before,
    `${heartbeat.name} still beats: its process is alive. killProcesses() of @fenced/executor-kit finds and ends everything that a block started on this host`,
  );
}

/** Asserts that programs that beat in the workspace are dead, including their processes if these run on this host. */
export async function assertDead(kit: CaseContext, executor: CodeExecutor, ...files: readonly string[]): Promise<void> {
  await Promise.all(files.map((file) => assertStopped(workspaceHeartbeat(executor, file))));
  if (kit.capabilities.isolation !== "none") return;
  for (const file of files) {
    const pid = await processId(executor, file);
    if (pid !== undefined) assert.ok(!(await isAlive(pid)), `process ${pid}, which beat in ${file}, is still there`);
  }
}

/** The id of the process that `spawnBeating` started. */
export async function processId(executor: CodeExecutor, file: string): Promise<number | undefined> {
  const text = await readIfThere(executor, `${file}.pid`);
  return text === undefined ? undefined : Number(new TextDecoder().decode(text));
}

/** True if a process of this host is alive; a zombie is not. */
export async function isAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== "linux") return true;
  // It may be reaped between the two checks.
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  return status !== undefined && !/\) Z /.test(status);
}

async function readIfThere(executor: CodeExecutor, file: string): Promise<Uint8Array | undefined> {
  try {
    return await executor.files.read(file);
  } catch (error) {
    if (FileNotFoundError.isInstance(error)) return undefined;
    throw error;
  }
}
