import assert from "node:assert/strict";
import type { CodeExecutor, ProcessExit, ProcessOptions, RunningProcess } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import { assertBeats, assertStopped, workspaceHeartbeat } from "./heartbeat.ts";
import { passes } from "./within.ts";

/** A shell loop that appends a byte to a file every 50 ms. */
export const beat = (file: string) => `while :; do printf . >> ${file}; sleep 0.05; done`;
/** Shell code that waits until the file `go` exists. */
export const untilGo = "while [ ! -e go ]; do sleep 0.05; done";
/**
 * A program that beats in `main`, and its children, which beat in other files and are recognizable only by their
 * origin.
 */
const family = {
  command: `sh -c '${beat("child")}' & ( env -i PATH="$PATH" sh -c '${beat("orphan")}' & ) ; ${beat("main")}`,
  files: ["child", "orphan", "main"],
};

/** Starts a program alongside blocks. */
export async function start(
  kit: CaseContext,
  executor: CodeExecutor,
  options: ProcessOptions,
): Promise<RunningProcess> {
  assert.ok(executor.processes, "an executor with `capabilities.processes` has `processes`");
  return kit.within("processes.start", executor.processes.start(options));
}

/** Reads a whole output as text. */
export function textOf(kit: CaseContext, stream: ReadableStream<Uint8Array>): Promise<string> {
  return kit.within("the end of the output", new Response(stream).text());
}

/** Runs a program to its end while reading both outputs. */
export async function run(
  kit: CaseContext,
  executor: CodeExecutor,
  options: ProcessOptions,
): Promise<ProcessExit & { readonly stdout: string; readonly stderr: string }> {
  const started = await start(kit, executor, options);
  const [stdout, stderr] = await Promise.all([textOf(kit, started.stdout), textOf(kit, started.stderr)]);
  return { stdout, stderr, ...(await kit.within("wait()", started.wait())) };
}

/** Starts a program with children, all of which beat. */
export async function startFamily(
  kit: CaseContext,
  executor: CodeExecutor,
  signal?: AbortSignal,
): Promise<RunningProcess> {
  const started = await start(kit, executor, { command: family.command, ...(signal && { signal }) });
  started.wait().catch(() => {});
  for (const file of family.files) await assertBeats(kit, workspaceHeartbeat(executor, file));
  return started;
}

/** Asserts that none of them is still beating. */
export async function assertFamilyDead(executor: CodeExecutor): Promise<void> {
  await Promise.all(family.files.map((file) => assertStopped(workspaceHeartbeat(executor, file))));
}

/** Waits until a program has stopped writing to a file; returns the file's size. */
export async function restingSize(kit: CaseContext, executor: CodeExecutor, file: string): Promise<number> {
  const heartbeat = workspaceHeartbeat(executor, file);
  await kit.eventually(`${file} is there`, () => heartbeat.count());
  await kit.eventually(`the program that writes ${file} waits`, () => passes(assertStopped(heartbeat)));
  return (await heartbeat.count()) ?? 0;
}
