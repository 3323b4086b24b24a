import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A program that uses the executor, with its own temporary directory. */
export class SoakHost implements AsyncDisposable {
  readonly #temporary = mkdtempSync(join(tmpdir(), "fenced-soak-"));
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #said = new Set<string>();
  readonly #ended: Promise<unknown>;
  #wake: () => void = () => {};

  private constructor(executor: string, settings: object, name: string) {
    this.#name = name;
    const words = [join(import.meta.dirname, "host.ts"), executor, JSON.stringify(settings), name, this.#temporary];
    this.#child = spawn(process.execPath, ["--import", "tsx", "--conditions=@fenced/source", ...words], {
      cwd: import.meta.dirname,
      env: { ...process.env, NODE_NO_WARNINGS: "1" },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#ended = once(this.#child, "exit");
    if (this.#child.stdout) {
      createInterface(this.#child.stdout).on("line", (line) => {
        this.#said.add(line);
        this.#wake();
      });
    }
  }

  /** @param name - globally unique. */
  static async open(executor: string, settings: object, name: string): Promise<SoakHost> {
    const host = new SoakHost(executor, settings, name);
    await host.says("ready");
    return host;
  }

  go(): void {
    this.#child.stdin?.write("go\n");
  }

  async says(word: string): Promise<void> {
    void this.#ended.then(() => this.#wake());
    while (!this.#said.has(word)) {
      if (this.#child.exitCode !== null) throw new Error(`the host program ended before it said ${word}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** Temporary files and processes of this program. */
  remains(): string[] {
    return [...readdirSync(this.#temporary), ...this.#processes().map((pid) => `process ${pid}: ${commandOf(pid)}`)];
  }

  #processes(): number[] {
    const marks = [`3600.${this.#name.replaceAll(/\D/g, "")}\0`, this.#temporary];
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => pid !== this.#child.pid && marks.some((mark) => `${commandOf(pid)}\0`.includes(mark)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.kill();
    for (const pid of this.#processes()) process.kill(pid, "SIGKILL");
    rmSync(this.#temporary, { recursive: true, force: true });
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}
