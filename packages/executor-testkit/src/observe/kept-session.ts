import assert from "node:assert/strict";
import type { CodeExecutor, ConnectExecutorOptions, SessionHandle } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { CommonExecutorOptions } from "../common-executor-options.ts";

/** How long the sessions of cases wait for a program, in milliseconds. */
export const keepAliveMs = 120_000;

/** Connects to a session that another program has left. */
export async function connect(
  kit: CaseContext,
  handle: SessionHandle | undefined,
  options?: ConnectExecutorOptions,
): Promise<CodeExecutor> {
  assert.ok(handle, "the executor has no handle");
  // Plain data, as it reaches another program.
  const saved = JSON.stringify(handle);
  assert.deepEqual(JSON.parse(saved), handle);
  const connecting = kit.subject.connect?.(structuredClone(handle), options);
  assert.ok(connecting);
  return kit.adopt(await kit.within("connectExecutor", connecting));
}

/** A started executor whose session outlives it. */
export async function start(kit: CaseContext, options: CommonExecutorOptions = {}): Promise<CodeExecutor> {
  const executor = await kit.create({ keepAliveMs, ...options });
  await kit.within("start()", executor.start());
  assert.equal(executor.capabilities.keepAlive, true);
  return executor;
}

/** Lets go of a session. */
export function detach(kit: CaseContext, executor: CodeExecutor): Promise<void> {
  const detaching = executor.detach?.();
  assert.ok(detaching, "the executor has no method detach");
  return kit.within("detach()", detaching);
}

/** Lets go of a session, and connects to it as another program would. */
export async function handOver(
  kit: CaseContext,
  executor: CodeExecutor,
  options?: ConnectExecutorOptions,
): Promise<CodeExecutor> {
  const { handle } = executor;
  await detach(kit, executor);
  return connect(kit, handle, options);
}

/** The handle that a host program has reported. */
export function reportedHandle(reports: readonly unknown[]): SessionHandle {
  const started = reports.find(isHandle);
  assert.ok(started, "the program has no handle");
  return started.handle;
}

function isHandle(value: unknown): value is { readonly handle: SessionHandle } {
  return typeof value === "object" && value !== null && "handle" in value && value.handle !== undefined;
}
