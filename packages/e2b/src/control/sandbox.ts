import { setMaxListeners } from "node:events";
import type { Duplex } from "node:stream";
import type { CodeExecutor, ExecutorProcesses } from "@fenced/core";
import { isSameSecret } from "@fenced/core/runtime";
import { ConnectError } from "../envd/connect-error.ts";
import { PolledWatchers } from "../envd/polled-watchers.ts";
import { SandboxProcesses } from "../envd/sandbox-processes.ts";
import { Guest } from "../guest/guest.ts";
import { Contexts } from "../interpreter/contexts.ts";
import type { SandboxSettings } from "./known-sandbox.ts";
import { type Usage, UsageLog } from "./usage-log.ts";

/** A sandbox while it runs: until it is paused or killed, or breaks down. */
export class Sandbox {
  readonly settings: SandboxSettings;
  /** Its token for `envd`; `undefined` if it has none. */
  readonly token: string | undefined;
  readonly trafficToken: string;
  readonly processes: SandboxProcesses;
  /** The contexts of its code interpreter. */
  readonly contexts: Contexts;
  readonly watchers: PolledWatchers = new PolledWatchers();
  /** Takes errors that clients only know as "internal error". */
  readonly report: (error: unknown) => void;
  readonly #executor: CodeExecutor;
  readonly #usage = new UsageLog();
  readonly #ending = new AbortController();
  #guest: Promise<Guest> | undefined;

  /** @param executor - started. */
  constructor(
    { settings, token, trafficToken }: Pick<Sandbox, "settings" | "token" | "trafficToken">,
    { executor, report }: { executor: CodeExecutor; report: (error: unknown) => void },
  ) {
    this.settings = settings;
    this.token = token;
    this.trafficToken = trafficToken;
    this.report = report;
    // Each of its streams listens; Node reports more than ten listeners as a leak.
    setMaxListeners(0, this.#ending.signal);
    this.#executor = executor;
    const surroundings = {
      processes: () => this.#processes,
      env: settings.env,
      home: executor.workspacePath,
    };
    this.processes = new SandboxProcesses(surroundings);
    this.contexts = new Contexts(surroundings);
  }

  /** Aborted when it has ended, which breaks all of its connections. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** The program in it that serves its files. */
  async guest(): Promise<Guest> {
    const before = this.#guest;
    const guest = await before?.catch(() => undefined);
    if (guest && !guest.isGone) return guest;
    // Somebody else may have noticed meanwhile.
    if (this.#guest !== undefined && this.#guest !== before) return this.#guest;
    this.#guest = Guest.start(this.#processes);
    return this.#guest;
  }

  /** What it has used, as far as it was asked for. */
  async usage(): Promise<readonly Usage[]> {
    return this.#usage.measure(await this.guest());
  }

  /**
   * Connects to a port on which a program in it listens.
   *
   * @throws ConnectError if that is not possible, or would lead to this server's machine; otherwise as
   *   `ExecutorProcesses.openPort` does.
   */
  async openPort(port: number): Promise<Duplex> {
    const { isolation, network } = this.#executor.capabilities;
    if (isolation === "none" || (isolation === "os-sandbox" && network === "open")) {
      throw new ConnectError("unimplemented", "Programs of this template listen on the server's own machine");
    }
    return this.#processes.openPort(port);
  }

  /** Whether this is the token of its `envd`, if it has one. */
  accepts(token: string | null): boolean {
    return this.token === undefined || isSameSecret(this.token, token);
  }

  /** Whether this is the token for its ports other than that of `envd`. */
  acceptsTraffic(token: string | null): boolean {
    return isSameSecret(this.trafficToken, token);
  }

  /** Call this when it has ended. */
  ended(reason: string): void {
    this.watchers.closeAll();
    this.#ending.abort(new ConnectError("unavailable", reason));
  }

  get #processes(): ExecutorProcesses {
    const { processes } = this.#executor;
    if (processes) return processes;
    throw new ConnectError("unimplemented", "The template's executor cannot start programs");
  }
}
