import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { within } from "@fenced/core/abort";

const launcherProgram: string = readFileSync(new URL("./launcher.py", import.meta.url), "utf8");

/** How to start a server. */
export interface LaunchSettings {
  readonly python: string;
  readonly token: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly startTimeoutMs: number;
  /** Bytes of memory that each process of a kernel may use; `undefined`: no limit. */
  readonly memoryBytes: number | undefined;
}

/** Characters of the server's output to keep. Kernels inherit its output, so code can write there, too. */
const keptCharacters = 8192;
/** Milliseconds within which a killed process is gone. */
const goneDeadlineMs = 5000;

/** The process of a Jupyter server on this host. It does not keep Node alive. */
export class LauncherProcess {
  readonly #gone: Promise<void>;
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  #log = "";
  readonly #logRead: Promise<unknown>;
  readonly #token: string;
  #port = 0;
  #ended: string | undefined;

  private constructor({ python, token, cwd, env, memoryBytes }: LaunchSettings) {
    this.#token = token;
    this.#process = spawn(python, ["-c", launcherProgram], { cwd, env, detached: true, stdio: "pipe" });
    this.#gone = once(this.#process, "exit").then(
      () => this.#end("the process ended"),
      (error: unknown) => this.#end(String(error)),
    );
    this.#process.on("error", (error) => this.#end(String(error)));
    this.#process.once("exit", (code, signal) => this.#end(`the process ended with ${signal ?? `exit code ${code}`}`));
    this.#process.stdin.on("error", () => {});
    // Standard input stays open: closing it stops the server.
    this.#process.stdin.write(`${JSON.stringify({ token, memoryBytes })}\n`);
    this.#process.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#log = (this.#log + text).slice(-keptCharacters);
    });
    this.#logRead = once(this.#process.stderr, "close").catch(() => {});
  }

  /**
   * Starts the process and waits until the server listens.
   *
   * @throws BackendUnavailableError with the server's last lines, if it does not.
   */
  static async start(settings: LaunchSettings): Promise<LauncherProcess> {
    const started = new LauncherProcess(settings);
    const port = await started.#announcedPort(settings.startTimeoutMs);
    if (port === undefined) {
      if (started.#ended !== undefined) await within(1000, started.#logRead);
      const reason = started.#ended ?? `it was not listening after ${settings.startTimeoutMs} ms`;
      throw new BackendUnavailableError(`The Jupyter server did not start: ${reason}\n${started.#lastLines()}\n`, {
        remedy: `Check whether this works: ${settings.python} -m jupyter_server --version`,
      });
    }
    started.#port = port;
    started.#unref();
    return started;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get port(): number {
    return this.#port;
  }

  /** Why the server ended, once it has. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** Waits until the process, which the caller has killed, is gone. */
  async leave(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) this.#process.ref();
    await within(goneDeadlineMs, this.#gone);
    for (const stream of [this.#process.stdin, this.#process.stdout, this.#process.stderr]) stream.destroy();
  }

  async #announcedPort(timeoutMs: number): Promise<number | undefined> {
    let said = "";
    const port = new Promise<number | undefined>((resolve) => {
      this.#process.stdout.setEncoding("utf8").on("data", (text: string) => {
        said = (said + text).slice(-keptCharacters);
        const announced = /^fenced:.*"port": (\d+).*\n/m.exec(said)?.[1];
        if (announced !== undefined) resolve(Number(announced));
      });
      void this.#gone.then(() => resolve(undefined));
      setTimeout(() => resolve(undefined), timeoutMs).unref();
    });
    return port;
  }

  /** Its last output, without a first partial line, which may hold the end of the token. */
  #lastLines(): string {
    const isCut = this.#log.length >= keptCharacters;
    const whole = isCut ? (/\n(?<rest>[^]*)/.exec(this.#log)?.groups?.["rest"] ?? "") : this.#log;
    return whole.trimEnd().split("\n").slice(-20).join("\n").replaceAll(this.#token, "<token>");
  }

  #end(reason: string): void {
    this.#ended ??= reason;
  }

  /** Lets Node exit while the server runs; the leash then ends the server. */
  #unref(): void {
    this.#process.unref();
    for (const stream of [this.#process.stdin, this.#process.stdout, this.#process.stderr]) {
      if (stream instanceof Socket) stream.unref();
    }
  }
}
