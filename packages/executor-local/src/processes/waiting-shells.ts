import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, writeSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import type { ControlGroup, ProcessFamily } from "@fenced/executor-kit";
import { blockGroup, blockMarkName, newBlockMark } from "./block-group.ts";
import type { Pipe, PipeSupply } from "./pipes.ts";
import { openUnnamed } from "./unnamed-file.ts";

/** Enters the group, and waits for the program that the shell becomes. */
const program = `{ echo 0 > "$0"; } 2> /dev/null; read -r _ && . /proc/self/fd/3`;

/** What a shell becomes. */
export interface NextProgram {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  /** All of its variables, except its mark. */
  readonly env: Readonly<Record<string, string>>;
}

/** A process that has been started for a program before that was known. */
export interface StartedShell {
  readonly child: ChildProcess;
  readonly mark: ProcessFamily["mark"];
  readonly group: ControlGroup;
  /** The ends to read from of its standard output and its standard error output. */
  readonly outputs: readonly [number, number];
}

/** One of them, while it waits. */
interface WaitingShell extends StartedShell {
  readonly env: Readonly<Record<string, string>>;
  /** An unnamed file with the commands that make it the program. */
  readonly script: number;
}

/**
 * Keeps a shell waiting in a control group of its own until it becomes the next program. A process that enters a group
 * makes the kernel wait until every processor has switched tasks, ten milliseconds and more, which here pass before
 * anybody waits for the program.
 */
export class WaitingShells {
  readonly #group: ControlGroup | undefined;
  readonly #pipes: PipeSupply;
  readonly #scratch: string;
  readonly #env: Readonly<Record<string, string>>;
  #waiting: WaitingShell | undefined;
  #making: Promise<void> | undefined;

  /**
   * @param group - the session's; without one, no shells are needed.
   * @param scratch - the session's directory for short-lived files.
   * @param env - variables that most programs get.
   */
  constructor(
    group: ControlGroup | undefined,
    pipes: PipeSupply,
    scratch: string,
    env: Readonly<Record<string, string>>,
  ) {
    this.#group = group;
    this.#pipes = pipes;
    this.#scratch = scratch;
    this.#env = env;
  }

  /** Starts the next shell, if none waits. Never fails: programs can do without. */
  prepare(): void {
    if (!this.#group || this.#waiting) return;
    this.#making ??= this.#make(this.#group)
      .then((shell) => {
        this.#waiting = shell;
      })
      .catch(() => {})
      .finally(() => {
        this.#making = undefined;
      });
  }

  /** Makes the waiting shell a program; `undefined` if none waits. */
  take(next: NextProgram): StartedShell | undefined {
    const shell = this.#waiting;
    if (!shell) return undefined;
    const { child } = shell;
    if (child.exitCode !== null || child.signalCode !== null) {
      // Otherwise, no other one would be started.
      this.#waiting = undefined;
      closeSync(shell.script);
      void dismiss(shell);
      return undefined;
    }
    if (Object.keys(next.env).some((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || shellsOwn.has(name))) {
      return undefined;
    }
    this.#waiting = undefined;
    try {
      const script = Buffer.from(scriptOf(next, shell.env));
      // On a full disk, a part may be written, which the shell would run.
      if (writeSync(shell.script, script) !== script.length) throw new Error("no room");
      child.ref();
      child.stdin?.end("\n");
      return shell;
    } catch {
      void dismiss(shell);
      return undefined;
    } finally {
      closeSync(shell.script);
    }
  }

  /** Gives up the waiting shell, and one that is being made. */
  async dismiss(): Promise<void> {
    await this.#making;
    const shell = this.#waiting;
    this.#waiting = undefined;
    if (!shell) return;
    closeSync(shell.script);
    await dismiss(shell);
  }

  async #make(session: ControlGroup): Promise<WaitingShell | undefined> {
    const mark = newBlockMark();
    const group = await blockGroup(session, mark.value);
    if (!group) return undefined;
    const pipes: Pipe[] = [];
    let script: number | undefined;
    try {
      for (let count = 0; count < 2; count += 1) {
        const pipe = await this.#pipes.take();
        if (pipe) pipes.push(pipe);
      }
      const [out, err] = pipes;
      if (!out || !err) throw new Error("no pipes");
      const env = { ...this.#env, [mark.name]: mark.value };
      script = openUnnamed(this.#scratch);
      const child = spawn("/bin/sh", ["-c", program, path.join(group.directory, "cgroup.procs")], {
        cwd: "/",
        env,
        stdio: ["pipe", out.writeEnd, err.writeEnd, script],
        detached: true,
      });
      child.on("error", () => {});
      if (child.pid === undefined) throw new Error("no process");
      child.unref();
      child.stdin?.on("error", () => {});
      if (child.stdin instanceof net.Socket) child.stdin.unref();
      return { child, mark, group, outputs: [out.readEnd, err.readEnd], env, script };
    } catch (error) {
      for (const { readEnd } of pipes) closeSync(readEnd);
      if (script !== undefined) closeSync(script);
      await group.remove();
      throw error;
    } finally {
      for (const { writeEnd } of pipes) closeSync(writeEnd);
    }
  }
}

async function dismiss({ child, group, outputs }: WaitingShell): Promise<void> {
  child.stdin?.destroy();
  for (const end of outputs) closeSync(end);
  await group.kill();
  await group.remove();
}

/** Variables to which some shells give a value, a type or a meaning of their own. */
const shellsOwn: ReadonlySet<string> = new Set([
  ..."_ IFS OLDPWD PWD SHLVL".split(" "),
  ..."BASHOPTS BASH_VERSINFO EUID GROUPS LINENO OPTIND PPID RANDOM SECONDS SHELLOPTS UID".split(" "),
]);

/** The commands that make a shell with these variables the program; its mark stays. */
function scriptOf({ command, cwd, env }: NextProgram, has: Readonly<Record<string, string>>): string {
  const removed = Object.keys(has).filter((name) => env[name] === undefined && name !== blockMarkName);
  return [
    `cd -P -- ${quoted(cwd)} || exit 126`,
    `unset _ OLDPWD PWD SHLVL ${removed.join(" ")}`,
    ...Object.entries(env).flatMap(([name, value]) => (has[name] === value ? [] : [`export ${name}=${quoted(value)}`])),
    `exec ${command.map(quoted).join(" ")} < /dev/null 3<&-\n`,
  ].join("\n");
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
