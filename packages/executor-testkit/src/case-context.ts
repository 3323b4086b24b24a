import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CodeBlock, CodeExecutor, CodeResult, ExecuteOptions, ExecutorCapabilities } from "@fenced/core";
import type { CommonExecutorOptions } from "./common-executor-options.ts";
import type { ExecutorSubject } from "./executor-subject.ts";
import type { FixtureLanguage } from "./languages/fixture-language.ts";
import { knownLanguages } from "./languages/known-languages.ts";
import { assertRejectsAs, type ErrorKind } from "./observe/assert-rejects-as.ts";
import { eventually, within } from "./observe/within.ts";
import type { SharedExecutors, SharedOptions } from "./shared-executors.ts";

/** Characters of output that a failure shows: its end, where programs say what was wrong. */
const mostShown = 10_000;

/** The default of `ExecutorSubject.patienceMs`. */
export const defaultPatienceMs = 120_000;
const defaults: SharedOptions = () => ({});

/** The tools of a case: the subject, its capabilities, and executors that are stopped when the case is over. */
export class CaseContext implements AsyncDisposable {
  readonly subject: ExecutorSubject;
  readonly capabilities: ExecutorCapabilities;
  /** The language in which most programs of the suite are written for this subject. */
  readonly language: FixtureLanguage;
  readonly #sharing: SharedExecutors | undefined;
  readonly #executors = new Set<CodeExecutor>();
  readonly #borrowed = new Map<CodeExecutor, SharedOptions>();
  readonly #directories: string[] = [];
  readonly #outside: (() => Promise<unknown>)[] = [];

  /** @param sharing - the executors that cases may share. */
  constructor(subject: ExecutorSubject, capabilities: ExecutorCapabilities, sharing?: SharedExecutors) {
    this.subject = subject;
    this.capabilities = capabilities;
    this.#sharing = sharing;
    this.language = preferredLanguage(subject, capabilities);
  }

  /** Time limit for one step in milliseconds. */
  get patienceMs(): number {
    return this.subject.patienceMs ?? defaultPatienceMs;
  }

  /** A new executor that is not started. */
  async create(options: CommonExecutorOptions = {}): Promise<CodeExecutor> {
    return this.adopt(await this.subject.create(options));
  }

  /**
   * A started executor with an empty workspace that other cases may have used before and may use afterwards. For cases
   * that leave only files behind and are not affected by what other cases left, such as variables and imported modules.
   * After a case that fails or hangs, the executor is stopped, and the next case gets a new one.
   *
   * A case about options, life cycles, memory, hostile code or leaks must create its own executor, and so must one that
   * leaves links, processes or a lost session.
   *
   * @param options - returns the executor's options. Cases that pass the same function object share an executor.
   */
  async shared(options: SharedOptions = defaults): Promise<CodeExecutor> {
    const idle = this.#sharing?.borrow(options);
    const executor = idle === undefined ? await this.create(options()) : this.adopt(idle);
    if (this.#sharing) this.#borrowed.set(executor, options);
    await this.within("start()", executor.start());
    return executor;
  }

  /**
   * The same for a case that ends blocks early, which may lose a stateful session; so stateful executors are not
   * shared.
   */
  sharedUnlessStateful(): Promise<CodeExecutor> {
    return this.capabilities.stateful ? this.create() : this.shared();
  }

  /** Stops the executors that the case borrowed along with the others, since nobody knows what it did to them. */
  discardShared(): void {
    this.#borrowed.clear();
  }

  /**
   * Kills the place where an executor's code runs. Stops shared executors, which may use the same server or connection.
   */
  async breakPlace(executor: CodeExecutor): Promise<void> {
    await this.#stopShared();
    await this.within("breakPlace", Promise.resolve(this.subject.breakPlace?.(executor)));
  }

  /**
   * Lists what executors keep outside this process now. Stops shared executors, whose resources would change meanwhile.
   */
  async resources(): Promise<readonly string[]> {
    if (this.subject.listResources === undefined) return [];
    await this.#stopShared();
    return this.subject.listResources();
  }

  /** Makes sure that an executor is stopped when the case is over. */
  adopt(executor: CodeExecutor): CodeExecutor {
    this.#executors.add(executor);
    return executor;
  }

  /** Creates a directory on this host that is removed when the case is over. */
  async directory(): Promise<string> {
    const path = await realpath(await mkdtemp(join(tmpdir(), "fenced-testkit-")));
    this.#directories.push(path);
    return path;
  }

  /** Creates a directory outside the workspace where the code runs. It is removed when the case is over. */
  async outside(executor: CodeExecutor): Promise<string> {
    if (this.capabilities.isolation === "none") return this.directory();
    const path = `/tmp/fenced-testkit-${randomUUID()}`;
    await this.succeedWith(executor, this.language.makeDirectory(path));
    this.#outside.push(async () => {
      await executor.start();
      await this.succeedWith(executor, this.language.removeDirectory(path));
    });
    return path;
  }

  /** Runs blocks with a deadline that only a hang can miss. */
  run(executor: CodeExecutor, blocks: CodeBlock | readonly CodeBlock[], options?: ExecuteOptions): Promise<CodeResult> {
    return this.within("executeCodeBlocks", executor.executeCodeBlocks("code" in blocks ? [blocks] : blocks, options));
  }

  /** The same for blocks that must succeed. */
  async succeed(
    executor: CodeExecutor,
    blocks: CodeBlock | readonly CodeBlock[],
    options?: ExecuteOptions,
  ): Promise<CodeResult> {
    const result = await this.run(executor, blocks, options);
    const { exitCode, output } = result;
    const shown = output.length > mostShown ? `…${output.slice(-mostShown)}` : output;
    assert.equal(exitCode, 0, `the blocks should have succeeded, but: ${shown}`);
    return result;
  }

  /** Runs statements of the preferred language as one block that must succeed. */
  succeedWith(executor: CodeExecutor, ...statements: readonly string[]): Promise<CodeResult> {
    return this.succeed(executor, this.language.program(...statements));
  }

  /** The paths of all files in an executor's workspace. */
  async paths({ files }: CodeExecutor): Promise<string[]> {
    return (await this.within("files.list", files.list())).map(({ path }) => path);
  }

  /** Asserts that a promise rejects with an error of this kind whose message matches `reason`. */
  rejects(kind: ErrorKind, what: string, promise: PromiseLike<unknown>, reason?: RegExp): Promise<void> {
    return assertRejectsAs(kind, what, this.within(what, promise), reason);
  }

  /** Adds the subject's patience as a deadline to a promise. */
  within<T>(what: string, promise: PromiseLike<T>): Promise<T> {
    return within(this.patienceMs, what, promise);
  }

  /** Polls with the subject's patience. */
  eventually<T>(what: string, probe: () => Promise<T | undefined> | T | undefined): Promise<T> {
    return eventually(this.patienceMs, what, probe);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const removals = await Promise.allSettled(this.#outside.map((remove) => remove()));
    const outcomes = [...removals, ...(await this.#giveBack())];
    const stops = [...this.#executors].map((executor) => this.within("stop() after the case", executor.stop()));
    outcomes.push(...(await Promise.allSettled(stops)));
    // Programs that should be dead may still write to them.
    await Promise.all(this.#directories.map((path) => rm(path, { recursive: true, force: true, maxRetries: 20 })));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  #stopShared(): Promise<void> {
    return this.within("stop() of shared executors", this.#sharing?.stop() ?? Promise.resolve());
  }

  /** Executors that cannot be given back stay among those to stop. */
  #giveBack(): Promise<PromiseSettledResult<void>[]> {
    const returns = [...this.#borrowed].map(async ([executor, options]) => {
      await this.within("the workspace is emptied", this.#sharing?.giveBack(options, executor) ?? Promise.resolve());
      this.#executors.delete(executor);
    });
    return Promise.allSettled(returns);
  }
}

function preferredLanguage(subject: ExecutorSubject, capabilities: ExecutorCapabilities): FixtureLanguage {
  const candidates = subject.language === undefined ? knownLanguages : [subject.language, ...knownLanguages];
  const found = candidates.find(({ name }) => capabilities.languages.includes(name));
  assert.ok(
    found,
    `the suite has no programs in any of ${capabilities.languages.join(", ")}: give the subject a \`language\``,
  );
  return found;
}
