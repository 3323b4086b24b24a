import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { launcherSource } from "../python/launcher-source.ts";
import { within } from "../within.ts";

/** How to start a server. */
export interface LaunchSettings {
  readonly python: string;
  readonly token: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly startTimeoutMs: number;
}

const linesKept = 20;

/** The process of a Jupyter server of this host. It keeps Node alive no more than the executors that use it. */
export class LauncherProcess {
  readonly #gone: Promise<void>;
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #lines: string[] = [];
  readonly #linesRead: Promise<void>;
  readonly #token: string;
  #port = 0;
  #ended: string | undefined;

  private constructor({ python, token, cwd, env }: LaunchSettings) {
    this.#token = token;
    this.#process = spawn(python, ["-c", launcherSource], { cwd, env, detached: true, stdio: "pipe" });
    this.#gone = once(this.#process, "exit").then(
      () => this.#end("the process ended"),
      (error: unknown) => this.#end(String(error)),
    );
    this.#process.on("error", (error) => this.#end(String(error)));
    this.#process.once("exit", (code, signal) => this.#end(`the process ended with ${signal ?? `exit code ${code}`}`));
    this.#process.stdin.on("error", () => {});
    // Not ended: the end of its input ends the server.
    this.#process.stdin.write(`${JSON.stringify({ token })}\n`);
    const lines = createInterface(this.#process.stderr).on("line", (line) => this.#remember(line));
    this.#linesRead = new Promise((resolve) => {
      lines.once("close", resolve);
    });
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
      if (started.#ended !== undefined) await within(1000, started.#linesRead);
      const reason = started.#ended ?? `it does not listen after ${settings.startTimeoutMs} ms`;
      throw new BackendUnavailableError(
        `The Jupyter server did not come up: ${reason}\n${started.#lines.join("\n")}\n`,
        {
          remedy: `See whether this works: ${settings.python} -m jupyter_server --version`,
        },
      );
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

  /** Waits until the process is gone, which must have been killed. */
  async leave(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) this.#process.ref();
    await this.#gone;
    for (const stream of [this.#process.stdin, this.#process.stdout, this.#process.stderr]) stream.destroy();
  }

  async #announcedPort(timeoutMs: number): Promise<number | undefined> {
    const lines = createInterface(this.#process.stdout);
    const port = new Promise<number | undefined>((resolve) => {
      lines.on("line", (line) => {
        const announced = /^fenced:.*"port": (\d+)/.exec(line)?.[1];
        if (announced !== undefined) resolve(Number(announced));
      });
      void this.#gone.then(() => resolve(undefined));
      setTimeout(() => resolve(undefined), timeoutMs).unref();
    });
    return port;
  }

  #remember(line: string): void {
    this.#lines.push(line.replaceAll(this.#token, "<token>"));
    if (this.#lines.length > linesKept) this.#lines.shift();
  }

  #end(reason: string): void {
    this.#ended ??= reason;
  }

  /** Node may end while the server runs; the leash then ends the server. */
  #unref(): void {
    this.#process.unref();
    for (const stream of [this.#process.stdin, this.#process.stdout, this.#process.stderr]) {
      if (stream instanceof Socket) stream.unref();
    }
  }
}
