import { randomUUID } from "node:crypto";
import { killProcesses, Leash } from "@fenced/executor-kit";
import type { RemoteProgram } from "../remote/remote-program.ts";
import type { SshExecutorOptions } from "../ssh-executor-options.ts";
import { type SshProcess, startSsh } from "./ssh-process.ts";

/** Time limit for the host to end everything in milliseconds. */
const closeMs = 10_000;
/** The same for one run whose streams are closed, while another one may follow. */
const oneMs = 3000;

/** The runs of ssh of one session, of which one at a time is used, and what ends them if this program dies. */
export class SshRuns {
  readonly #options: SshExecutorOptions;
  /** A variable of everything that they start here. */
  readonly #mark: { readonly name: string; readonly value: string } = { name: "FENCED_SSH", value: randomUUID() };
  readonly #leash: Leash = new Leash({ mark: this.#mark, remove: [] });
  readonly #running = new Set<SshProcess>();
  #last: SshProcess | undefined;

  constructor(options: SshExecutorOptions) {
    this.#options = options;
  }

  /** The last one, which may have ended. */
  get last(): SshProcess | undefined {
    return this.#last;
  }

  /** Runs a program on the host. */
  start({ command, text }: RemoteProgram): SshProcess {
    const ssh = startSsh(this.#options, command, this.#mark);
    this.#last = ssh;
    this.#running.add(ssh);
    void ssh.ended.then(() => this.#running.delete(ssh));
    ssh.child.stdin.write(text);
    return ssh;
  }

  /** Ends one of several when its streams are closed. */
  endWithStreams(ssh: SshProcess): void {
    ssh.child.stdout.once("close", () => void endSsh(ssh, oneMs));
  }

  /** Ends all of them. @param limitMs - how long they may take. */
  async end(limitMs: number = closeMs): Promise<void> {
    await Promise.all([...this.#running].map((ssh) => endSsh(ssh, limitMs)));
    // A proxy may have left ssh's group.
    if (this.#last) await killProcesses({ mark: this.#mark });
    await this.#leash.release();
  }
}

async function endSsh({ child, ended, kill }: SshProcess, limitMs: number): Promise<void> {
  child.stdin.destroy();
  // Otherwise, it would wait for a reader.
  child.stdout.resume();
  const late = setTimeout(kill, limitMs);
  await ended;
  clearTimeout(late);
}
