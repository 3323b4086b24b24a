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

/** Time for what a busy machine does slowly. */
const patienceMs = 60_000;
/** Time after which what hangs counts as hung: a test waits for all of it, and what comes before must not take it. */
const hungAfterMs = 15_000;

/** A subject whose executors are good ones, broken. */
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
    "output > keeps standard output and standard error apart, and in order together",
    /2\\n4/,
  ],
  [
    "takes any network policy",
    { ...broken((good) => good, withoutNetwork), takesNetworkPolicy: true },
    "network policy > is checked when the executor is created",
    /network: .* should reject with InvalidInputError/,
  ],
  ["goes on after a failure", passOn(IgnoresFailures), "blocks > stops at the first block that fails", /./],
  [
    "ignores the timeout",
    hangs(passOn(IgnoresTimeout)),
    "timeout > may be over before the program has begun",
    /hangs: executeCodeBlocks/,
  ],
  [
    "throws on an unknown language",
    passOn(ThrowsOnUnknownLanguage),
    "languages > fails a block in an unknown language with exit code 1 and says what it runs",
    /unknown language/,
  ],
  [
    "keeps a call's environment",
    passOn(RemembersEnvironment),
    "environment > forgets a call's variables after the call",
    /unset/,
  ],
  [
    "hands on the host's environment",
    broken(
      (good) => good,
      (options) => ({ ...options, env: { ...process.env, ...options.env } as Record<string, string> }),
    ),
    "environment > keeps the host's variables from the code",
    /FENCED_TESTKIT_SECRET.*hostEnvironment/s,
  ],
  [
    "lets pip talk",
    broken(
      (good) => good,
      (options) => ({ ...options, env: { PIP_QUIET: "0", PIP_NO_INPUT: "0", ...options.env } }),
    ),
    "environment > makes pip quiet",
    /PIP_QUIET, PIP_NO_INPUT: use blockEnvironment/,
  ],
  [
    "declares state that it has not",
    passOn(SaysItIsStateful),
    "state > variables survive from block to block and from call to call",
    /should have succeeded/,
  ],
  [
    "expands what is in the code",
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
    "life cycle > stop() without start(), twice and at once does no harm",
    /hangs: the first start and stop/,
  ],
  [
    "restarts in name only",
    passOn(RestartsInName),
    "background processes > a process that a block leaves running lives on, until restart() (child)",
    /still beats/,
  ],
  [
    "rejects with an error of its own",
    passOn(RejectsWithErrorOfItsOwn),
    "abort > before the call: nothing runs and the call rejects with the reason",
    /signal\.reason itself/,
  ],
  [
    "rejects before all is dead",
    passOn(RejectsBeforeTheDeath),
    "abort > during executeCodeBlocks: rejects with the reason once all is dead",
    /still beats/,
  ],
  [
    "runs before anybody listens",
    passOn(IsEager),
    "stream > runs nothing before the first event is asked for",
    /ran\.txt/,
  ],
  [
    "outlives its consumer",
    passOn(OutlivesItsConsumer),
    "stream > kills the program when the loop is left",
    /still beats/,
  ],
  [
    "reads ahead of its consumer",
    hangs(passOn(ReadsAheadOfItsConsumer)),
    "stream that nobody reads > pauses the program, and holds no more than a little of its output",
    /although nobody read|stalls while nobody reads/,
  ],
  [
    "ends its stream twice",
    passOn(EndsTwice),
    "stream > brackets each block and ends with exactly one result",
    /result/,
  ],
  [
    "keeps the head of the output only",
    broken(
      (good) => new KeepsTheHeadOnly(good),
      ({ maxOutputBytes: _ignored, ...options }) => options,
    ),
    "output > keeps head and tail of output over the limit, and names the cut with its size",
    /the tail is kept/,
  ],
  ["opens any file", passOn(OpensAnyFile), "workspace > refuses paths that lead out", /WorkspacePathError/],
  ["runs one call at a time", hangs(passOn(RunsOneCallAtATime)), "concurrency > runs calls side by side", /hangs/],
  [
    "tells the bodies of functions",
    passOn(TellsTheBodies),
    "function prompt > shows the module, signatures and docstrings, and no bodies",
    /secret_body/,
  ],
  ["forgets its settings", passOn(ForgetsSettings), "component > keeps its settings when loaded", /FENCED_A/],
  [
    "leaves temporary files",
    await host("leaves-files-host.ts"),
    "leaks > no process, file or handle remains after stop(), and Node ends by itself",
    /no temporary file remains/,
  ],
  [
    "leaves a child process",
    await host("leaves-child-host.ts"),
    "leaks > no process, file or handle remains after stop(), and Node ends by itself",
    /no child process remains/,
  ],
  [
    "keeps Node alive",
    hangs(await host("keeps-alive-host.ts")),
    "leaks > no process, file or handle remains after stop(), and Node ends by itself",
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
