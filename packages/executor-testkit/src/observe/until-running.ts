import type { CodeExecutor, CodeResult } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { FixtureLanguage } from "../languages/fixture-language.ts";
import type { FollowedStream } from "./follow-stream.ts";
import { workspaceHeartbeat } from "./heartbeat.ts";

/** Statements of a program that says `started` when it has begun to beat in `file`, and goes on by `beat`. */
export function beating(
  language: FixtureLanguage,
  file: string,
  beat: (file: string) => string = (path) => language.beat(path),
): readonly string[] {
  return [language.writeFile(file, "."), language.print("started"), beat(file)];
}

/** Waits until a block that prints `started` and then beats in `file` has got that far. */
export async function untilRunning(
  kit: CaseContext,
  executor: CodeExecutor,
  followed: FollowedStream,
  file: string,
): Promise<void> {
  // A remote executor may hold the output back until the block has ended, so there the file alone tells.
  if (kit.capabilities.isolation !== "remote") {
    await kit.within("the block's first output", followed.seen("started\n"));
  }
  await untilBeating(kit, executor, file);
}

/** Waits until a block that is about to beat in `file` does. */
export async function untilBeating(kit: CaseContext, executor: CodeExecutor, file: string): Promise<void> {
  const { isolation, stateful } = kit.capabilities;
  if (isolation === "remote" || !stateful) {
    const heartbeat = workspaceHeartbeat(executor, file);
    await kit.eventually(`the block beats in ${file}`, async () => ((await heartbeat.count()) ?? 0) > 0 || undefined);
    return;
  }
  // A session that keeps state may let files wait until the block has ended. From its output to its first beat is a moment.
  await new Promise((resolve) => {
    setTimeout(resolve, 500);
  });
}

/** Starts a block that runs until there is a file `go`, and then prints `lived on`; resolves once it runs. */
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

/** How long a block that is to be ended gets to begin, at first. */
const firstMs = 1000;

/**
 * Ends a block that adds to a file, with more and more time until it had begun to. How long a program takes to begin is up to
 * the machine; a block that was ended before it began shows nothing.
 *
 * @param attempt - runs the block with an executor of its own, for some milliseconds.
 */
export async function withEnoughTime<Ended extends { readonly executor: CodeExecutor }>(
  kit: CaseContext,
  attempt: (milliseconds: number) => Promise<Ended>,
  file = "main",
): Promise<Ended> {
  for (let milliseconds = firstMs; ; milliseconds *= 2) {
    const ended = await attempt(milliseconds);
    const count = await workspaceHeartbeat(ended.executor, file).count();
    if ((count ?? 0) > 0 || milliseconds * 2 > kit.patienceMs) return ended;
    await kit.within("stop() between two attempts", ended.executor.stop());
  }
}
