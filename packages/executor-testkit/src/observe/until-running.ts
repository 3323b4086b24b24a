import type { CodeExecutor, CodeResult } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { FixtureLanguage } from "../languages/fixture-language.ts";
import type { FollowedStream } from "./follow-stream.ts";
import { workspaceHeartbeat } from "./heartbeat.ts";

/** Statements of a program that prints `started` once it beats in `file`, and continues with `beat`. */
export function beating(
  language: FixtureLanguage,
  file: string,
  beat: (file: string) => string = (path) => language.beat(path),
): readonly string[] {
  return [language.writeFile(file, "."), language.print("started"), beat(file)];
}

/** Waits until a block that prints `started` and then beats in `file` has done so. */
export async function untilRunning(
  kit: CaseContext,
  executor: CodeExecutor,
  followed: FollowedStream,
  file: string,
): Promise<void> {
  // A remote executor may hold back the output until the block has ended, so only the file shows it.
  if (kit.capabilities.isolation !== "remote") {
    await kit.within("the block's first output", followed.seen("started\n"));
  }
  await untilBeating(kit, executor, file);
}

/** Waits until a block that will beat in `file` does. */
export async function untilBeating(kit: CaseContext, executor: CodeExecutor, file: string): Promise<void> {
  const { isolation, stateful } = kit.capabilities;
  if (isolation === "remote" || !stateful) {
    const heartbeat = workspaceHeartbeat(executor, file);
    await kit.eventually(`the block beats in ${file}`, async () => ((await heartbeat.count()) ?? 0) > 0 || undefined);
    return;
  }
  // A session that keeps state may delay file operations until the block has ended. Its first beat follows its output
  // within moments.
  await new Promise((resolve) => {
    setTimeout(resolve, 500);
  });
}

/** Starts a block that runs until a file `go` exists, and then prints `lived on`; resolves once it runs. */
export async function startWaiting(
  kit: CaseContext,
  executor: CodeExecutor,
): Promise<{ readonly result: Promise<CodeResult> }> {
  const { language } = kit;
  const statements = [language.writeFile("waits", "."), language.awaitFile("go"), language.print("lived on")];
  const result = kit.run(executor, language.program(...statements));
  result.catch(() => {});
  await untilBeating(kit, executor, "waits");
  return { result };
}

/** The initial time for a block to begin before it is ended, in milliseconds. */
const firstMs = 1000;

/**
 * Does something with a time that may be too short on a slow machine, and does it again with twice the time as long as it turns out that
 * it was, which proves nothing. Gives up when that would take longer than the subject's patience.
 *
 * @param attempt - takes that time in milliseconds; returns whether it was enough, and what the case checks.
 */
export async function withDoubledTime<Made extends { readonly wasEnough: boolean }>(
  kit: CaseContext,
  shortestMs: number,
  attempt: (milliseconds: number) => Promise<Made>,
): Promise<Made> {
  for (let milliseconds = shortestMs; ; milliseconds *= 2) {
    const made = await attempt(milliseconds);
    if (made.wasEnough || milliseconds * 2 > kit.patienceMs) return made;
  }
}

/**
 * Ends a block that appends to a file, and retries with more time until the block had begun to do so. How long a
 * program takes to begin depends on the machine, and a block that is ended before that proves nothing.
 *
 * @param attempt - runs the block with its own executor, for the given number of milliseconds.
 */
export async function withEnoughTime<Ended extends { readonly executor: CodeExecutor }>(
  kit: CaseContext,
  attempt: (milliseconds: number) => Promise<Ended>,
  file = "main",
): Promise<Ended> {
  const { ended } = await withDoubledTime(kit, firstMs, async (milliseconds) => {
    const made = await attempt(milliseconds);
    const count = await workspaceHeartbeat(made.executor, file).count();
    const wasEnough = (count ?? 0) > 0;
    if (!wasEnough && milliseconds * 2 <= kit.patienceMs) {
      await kit.within("stop() between two attempts", made.executor.stop());
    }
    return { wasEnough, ended: made };
  });
  return ended;
}
