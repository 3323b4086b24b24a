import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { Readable, Writable } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { inGroups } from "@fenced/executor-kit";
import {
  filterDescriptor,
  firstSettingsDescriptor,
  infoDescriptor,
  type SandboxPlan,
  sandboxStart,
} from "./bubblewrap-command.ts";
import { explainStart, unsupportedSystem } from "./sandbox-problems.ts";
import { systemCallFilter } from "./system-call-filter.ts";
import type { SystemCallTable } from "./system-calls.ts";

const longestWords = 4000;

/** How bubblewrap is started. */
export interface BubblewrapStart {
  readonly command: readonly [string, ...string[]];
  /** What to write to its standard input first. */
  readonly input: Uint8Array;
  /** The number of its descriptors, standard streams included; all are pipes. */
  readonly descriptors: number;
}

/**
 * Plans the start of bubblewrap in the control groups of its limits.
 *
 * @param hasServer - the descriptor after its own leads to the server of its session.
 * @throws BackendUnavailableError on processors for whose system calls there is no filter.
 */
export function bubblewrapStart(
  plan: SandboxPlan,
  env: Readonly<Record<string, string>>,
  hasServer: boolean,
): BubblewrapStart {
  // Before there is anything to undo.
  systemCallTable();
  const descriptors = firstSettingsDescriptor + plan.settings.length;
  const { command, input } = sandboxStart(plan, hasServer ? descriptors : undefined);
  return { command: inGroups(plan.limits.groups, command, env), input, descriptors };
}

/** A bubblewrap that was started: gives it what it reads from its descriptors, and keeps what it says. */
export class StartedBubblewrap {
  readonly #plan: SandboxPlan;
  readonly #ended: Promise<unknown>;
  #said = "";
  #info = "";

  /** @param child - bubblewrap, or what has passed its descriptors on to it. */
  constructor(child: ChildProcess, plan: SandboxPlan) {
    this.#plan = plan;
    const { stderr, stdio: all } = child;
    const [filter, info] = [all[filterDescriptor], all[infoDescriptor]];
    if (!stderr || !(filter instanceof Writable) || !(info instanceof Readable)) {
      throw withoutStreams(child);
    }
    stderr.on("data", (bytes: Buffer) => this.say(bytes.toString()));
    info.on("data", (bytes: Buffer) => {
      this.#info = (this.#info + bytes.toString()).slice(0, longestWords);
    });
    this.#ended = once(info, "close").catch(() => {});
    for (const stream of [filter, info]) stream.on("error", () => {});
    // Beside bubblewrap's start.
    filter.end(systemCallFilter(systemCallTable()));
    for (const [index, { text }] of plan.settings.entries()) {
      const file = all[firstSettingsDescriptor + index];
      if (!(file instanceof Writable)) throw withoutStreams(child);
      file.on("error", () => {});
      file.end(text);
    }
  }

  /** The end of what it, and the first program in it, have said. */
  get said(): string {
    return this.#said;
  }

  say(words: string): void {
    this.#said = (this.#said + words).slice(-longestWords);
  }

  /** The first process in the sandbox, as this host sees it; `undefined` until that is known. */
  get firstProcess(): number | undefined {
    const [, first] = /"child-pid": (\d+)/.exec(this.#info) ?? [];
    return first === undefined ? undefined : Number(first);
  }

  /**
   * Call it once the first process has answered.
   *
   * @throws BackendUnavailableError if the sandbox is not in the control groups that enforce its limits.
   */
  async checkGroups(): Promise<void> {
    const { groups } = this.#plan.limits;
    if (groups.length === 0) return;
    // All processes that have it close it before the first process answers.
    await this.#ended;
    const members = groups.map(async ({ directory }) => {
      return { directory, list: await readFile(path.join(directory, "cgroup.procs"), "utf8").catch(() => "") };
    });
    for (const { directory, list } of await Promise.all(members)) {
      if (list.split("\n").includes(String(this.firstProcess))) continue;
      throw new BackendUnavailableError(`The sandbox could not enter its control group ${directory}`, {
        remedy: "Let this program move processes there, or run it where it cannot create any control groups.",
      });
    }
  }
}

/** @throws BackendUnavailableError on processors for whose system calls there is no filter. */
function systemCallTable(): SystemCallTable {
  if (process.arch === "x64" || process.arch === "arm64") return process.arch;
  throw unsupportedSystem();
}

/** Ends a bubblewrap for whose streams Node had no descriptors left. */
function withoutStreams(child: ChildProcess): Error {
  child.kill("SIGKILL");
  return explainStart("");
}
