import { join } from "node:path";
import type { CodeExecutor } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { describe, expect, it } from "vitest";
import type { CommonExecutorOptions, ExecutorSubject } from "../src/index.ts";
import { localSubject } from "./local-subject.ts";
import { runCase } from "./run-case.ts";
import {
  DropsStandardError,
  IgnoresFailures,
  IgnoresTimeout,
  ThrowsOnUnknownLanguage,
  RemembersEnvironment,
  SaysItIsStateful,
  AsksTheShellForArguments,
  NeverStops,
  HangsInStop,
  RestartsInName,
  RejectsWithErrorOfItsOwn,
  RejectsBeforeTheDeath,
  IsEager,
  OutlivesItsConsumer,
  ReadsAheadOfItsConsumer,
  EndsTwice,
  KeepsTheHeadOnly,
  OpensAnyFile,
  RunsOneCallAtATime,
  TellsTheBodies,
  ForgetsSettings,
} from "./wrong-executors.ts";

/** Time for slow operations on a busy machine. */
const patienceMs = 60_000;
/** Time after which a call counts as hung. A test waits for all of it, and earlier steps must not use it up. */
const hungAfterMs = 15_000;

/** A subject whose executors are good ones with one thing broken. */
function broken(
  wrap: (good: CodeExecutor, options: CommonExecutorOptions) => CodeExecutor,
  change: (options: CommonExecutorOptions) => CommonExecutorOptions = (options) => options,
): ExecutorSubject {
  return {
    ...localSubject,
    patienceMs,
    create: async (options) => wrap(await localSubject.create(change(options)), options),
  };
}

const host = async (fixture: string): Promise<ExecutorSubject> => ({
  ...localSubject,
  patienceMs,
  hostCommand: await bundledCommand(join(import.meta.dirname, "fixtures", fixture)),
});

const passOn = (Wrong: new (good: CodeExecutor) => CodeExecutor) => broken((good) => new Wrong(good));

const hangs = (subject: ExecutorSubject): ExecutorSubject => ({ ...subject, patienceMs: hungAfterMs });

const withoutNetwork = ({ network: _, ...rest }: CommonExecutorOptions): CommonExecutorOptions => rest;

const wrong: readonly [what: string, subject: ExecutorSubject, failing: string, message: RegExp][] = [
  [
    "drops standard error",
    passOn(DropsStandardError),
    "output > separates standard output from standard error, and combines both in order",
    /2\\n4/,
  ],
  [
    "takes any network policy",
    { ...broken((good) => good, withoutNetwork), takesNetworkPolicy: true },
    "network policy > is checked when the executor is created",
    /network: .* should reject with InvalidInputError/,
  ],
  ["continues after a failure", passOn(IgnoresFailures), "blocks > stops at the first block that fails", /./],
  [
    "ignores the timeout",
    hangs(passOn(IgnoresTimeout)),
    "timeout > may expire before the program has started",
    /hangs: executeCodeBlocks/,
  ],
  [
    "throws on an unknown language",
    passOn(ThrowsOnUnknownLanguage),
    "languages > fails a block in an unknown language with exit code 1 and lists the known ones",
    /unknown language/,
  ],
  [
    "keeps a call's environment",
    passOn(RemembersEnvironment),
    "environment > forgets a call's variables after the call",
    /unset/,
  ],
  [
    "passes on the host's environment",
    broken(
      (good) => good,
      (options) => ({ ...options, env: { ...process.env, ...options.env } as Record<string, string> }),
    ),
    "environment > hides the host's variables from the code",
    /FENCED_TESTKIT_SECRET.*hostEnvironment/s,
  ],
  [
    "lets pip print and prompt",
    broken(
      (good) => good,
      (options) => ({ ...options, env: { PIP_QUIET: "0", PIP_NO_INPUT: "0", ...options.env } }),
    ),
    "environment > makes pip quiet",
    /PIP_QUIET, PIP_NO_INPUT: use blockEnvironment/,
  ],
  [
    "declares state that it does not keep",
    passOn(SaysItIsStateful),
    "state > variables survive from block to block and from call to call",
    /should have succeeded/,
  ],
  [
    "expands variables in the code",
    passOn(AsksTheShellForArguments),
    "code > runs code with quotes, backslashes and unicode",
    /HOME/,
  ],
  [
    "leaves a process behind",
    passOn(NeverStops),
    "background processes > a process that a block leaves running is dead after stop() (child)",
    /outlived stop/,
  ],
  [
    "hangs in stop()",
    hangs(passOn(HangsInStop)),
    "life cycle > stop() is harmless without start(), repeatedly and concurrently",
    /hangs: the first start and stop/,
  ],
  [
    "restarts in name only",
    passOn(RestartsInName),
    "background processes > a process that a block leaves running lives until restart() (child)",
    /still beats/,
  ],
  [
    "rejects with an error of its own",
    passOn(RejectsWithErrorOfItsOwn),
    "abort > before the call: nothing runs and the call rejects with the reason",
    /signal\.reason itself/,
  ],
  [
    "rejects before every process is dead",
    passOn(RejectsBeforeTheDeath),
    "abort > during executeCodeBlocks: rejects with the reason once every process is dead",
    /still beats/,
  ],
  [
    "runs before anybody reads the stream",
    passOn(IsEager),
    "stream > runs nothing before the first event is requested",
    /ran\.txt/,
  ],
  [
    "outlives its consumer",
    passOn(OutlivesItsConsumer),
    "stream > kills the program when the consumer leaves the loop",
    /still beats/,
  ],
  [
    "reads ahead of its consumer",
    hangs(passOn(ReadsAheadOfItsConsumer)),
    "stream that nobody reads > pauses the program and buffers little of its output",
    /although nobody read|stalls while nobody reads/,
  ],
  [
    "ends its stream twice",
    passOn(EndsTwice),
    "stream > brackets each block and ends with exactly one result",
    /result/,
  ],
  [
    "keeps only the head of the output",
    broken(
      (good) => new KeepsTheHeadOnly(good),
      ({ maxOutputBytes: _ignored, ...options }) => options,
    ),
    "output > keeps the head and tail of output over the limit, and marks the cut with its size",
    /the tail is kept/,
  ],
  ["opens any file", passOn(OpensAnyFile), "workspace > refuses paths that lead out", /WorkspacePathError/],
  ["runs one call at a time", hangs(passOn(RunsOneCallAtATime)), "concurrency > runs calls side by side", /hangs/],
  [
    "reveals the bodies of functions",
    passOn(TellsTheBodies),
    "function prompt > shows the module, signatures and docstrings, and no bodies",
    /secret_body/,
  ],
  ["forgets its settings", passOn(ForgetsSettings), "component > keeps its settings when loaded", /FENCED_A/],
  [
    "leaves temporary files",
    await host("leaves-files-host.ts"),
    "leaks > no process, file or handle remains after stop(), and Node exits by itself",
    /no temporary file remains/,
  ],
  [
    "leaves a child process",
    await host("leaves-child-host.ts"),
    "leaks > no process, file or handle remains after stop(), and Node exits by itself",
    /no child process remains/,
  ],
  [
    "keeps Node alive",
    hangs(await host("keeps-alive-host.ts")),
    "leaks > no process, file or handle remains after stop(), and Node exits by itself",
    /keeps Node alive/,
  ],
  [
    "is survived by its programs",
    await host("no-leash-host.ts"),
    "leaks > nothing remains after the program dies of SIGKILL",
    /processes of a dead program die/,
  ],
];

describe("the suite fails an executor that", needs("python3"), () => {
  it.each(wrong)("%s", { timeout: 300_000 }, async (_what, subject, failing, message) => {
    const outcome = runCase(subject, failing);
    await expect(outcome).rejects.toThrow(message);
  });
});
