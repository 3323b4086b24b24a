import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import type { PlaceInventory } from "../../languages/command-languages.ts";
import type { FileOwner } from "../../workspace/pinned-directory.ts";
import { Supervisor } from "../supervisor.ts";
import { connectDirectly, type DirectConnection, FrameReader, frameType } from "../wire/wire.ts";

const supervisorMagic = "FENCED1\n";
const shellMagic = "FENCED0\n";
const longestGreeting = 1_048_576;
const answerMs = 60_000;
const lastWordsMs = 200;

/** The standard streams of the process that `supervisorCommand` started. */
export interface SupervisorStreams {
  /** The supervisor runs while this is open; closing it kills all programs and ends the supervisor. */
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Its content is included in errors. Default: not read. */
  readonly stderr?: Readable | null;
}

/** Options of `connectSupervisor`; all are optional. */
export interface ConnectOptions {
  /** Cancels the connection attempt. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Absolute path on this host of the socket that a supervisor with a `probe` creates. If the directory turns out to be
   * shared, the supervisor is contacted over the socket, and the streams only keep it alive. Default: none. Linux only.
   */
  readonly socket?: string | undefined;
  /**
   * Called once, when the supervisor has ended or sent invalid data. Then call `supervisor.fail`, with a more specific
   * error if you have one. Default: `supervisor.fail(error)`.
   */
  readonly onLost?: ((error: Error) => void) | undefined;
  /**
   * Returns true while the connection is broken and may come back: what the supervisor does not answer then says
   * nothing about it. Default: never.
   */
  readonly isCut?: (() => boolean) | undefined;
}

/** What is available where the supervisor runs. */
export interface SupervisorInventory extends PlaceInventory {
  /** The user that programs run as. */
  readonly owner: FileOwner;
  /** The id of the process that answered. */
  readonly process: number;
  /** The boot id of the kernel there, if `mounts` were asked for and it is known. */
  readonly kernel?: string;
  /** The `mounts` that exist there: `device:inode` by path, or `?` if the user may not look at it. */
  readonly mounts: ReadonlyMap<string, string>;
  /** The highest number that something of an earlier host has. */
  readonly last: number;
  /** Interpreters that an earlier host has left, if it has used any. */
  readonly interpreters?: LeftInterpreters;
  /** An earlier host has submitted runs. Default: false. */
  readonly hasRuns?: boolean;
  /** Path of a Python that can watch directories. Default: there is none. */
  readonly watcher?: string;
  /** The probe file's content as seen there, or why it cannot be read or written. */
  readonly probe?: string;
}

/** The path of Python where a supervisor runs. */
export function pythonOf({ programs }: SupervisorInventory): string {
  return programs.get("python3") ?? programs.get("python") ?? "python3";
}

/** Interpreters that live from block to block, and that an earlier host has left to this one. */
export interface LeftInterpreters {
  /** At most one; it has a number, and may show values the way IPython does. */
  readonly living: readonly { readonly number: number; readonly displays: boolean }[];
}

/** The answer to a connection attempt. */
export interface SupervisorAnswer {
  readonly inventory: SupervisorInventory;
  /** `undefined` if there is no Python; what answered then starts no programs, but only waits for its input to end. */
  readonly supervisor: Supervisor | undefined;
}

/**
 * Waits up to 60 s for the greeting of a supervisor, and takes over its streams.
 *
 * @throws BackendUnavailableError if it ends or sends something else, with that text, or does not answer; the signal's
 * reason if it is aborted.
 *
 * @example
 * const [program, ...words] = supervisorCommand({ directory: "/tmp/session", workspace: "/workspace" });
 * const { supervisor } = await connectSupervisor(spawn("docker", ["exec", "-i", "box", program, ...words]));
 */
export function connectSupervisor(streams: SupervisorStreams, options: ConnectOptions = {}): Promise<SupervisorAnswer> {
  const { signal } = options;
  return new Promise<SupervisorAnswer>((resolve, reject) => {
    const greeting = new Greeting(streams, options, { resolve, reject });
    const late = setTimeout(() => greeting.fail(notAnswered()), answerMs);
    const abort = (): void => greeting.fail(signal?.reason);
    greeting.settled = () => {
      clearTimeout(late);
      signal?.removeEventListener("abort", abort);
    };
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
  });
}

/** Settles the wait for a greeting. */
interface Outcome {
  readonly resolve: (answer: SupervisorAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** Determines from the first bytes what is sending, and leaves everything else to a `Supervisor`. */
class Greeting {
  /** Called once it is known what answered, or that nothing did. */
  settled: () => void = () => {};
  readonly #streams: SupervisorStreams;
  readonly #options: ConnectOptions;
  readonly #outcome: Outcome;
  #text = "";
  #errors = "";
  #frames: FrameReader | undefined;
  #supervisor: Supervisor | undefined;
  #answered = false;
  #greeted = false;
  #failed = false;

  constructor(streams: SupervisorStreams, options: ConnectOptions, outcome: Outcome) {
    this.#streams = streams;
    this.#options = options;
    this.#outcome = outcome;
    const { stdin, stdout, stderr } = streams;
    stderr?.on("data", (bytes: Buffer) => {
      this.#errors = (this.#errors + bytes.toString()).slice(-2000);
    });
    stderr?.on("error", () => {});
    stdout.on("data", this.#take);
    for (const stream of [stdin, stdout]) stream.on("error", (error: Error) => this.fail(error));
    for (const end of ["end", "close"]) stdout.once(end, () => this.#end());
  }

  /** Also called later, if what arrives is invalid. */
  fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.settled();
    this.#streams.stdin.destroy();
    this.#streams.stdout.destroy();
    const reason = error instanceof Error ? error : new Error(String(error));
    if (!this.#answered) this.#outcome.reject(error);
    else if (this.#options.onLost) this.#options.onLost(reason);
    else this.#supervisor?.fail(reason);
  }

  /** The last error message may still be arriving. */
  #end(): void {
    const { stderr } = this.#streams;
    const end = (): void => this.fail(this.#ended());
    const more = stderr !== undefined && stderr !== null && !stderr.readableEnded && !stderr.destroyed;
    setTimeout(end, more ? lastWordsMs : 0);
    if (more) stderr.once("end", end);
  }

  readonly #take = (bytes: Buffer): void => {
    try {
      if (this.#failed) return;
      if (this.#frames) this.#frames.push(bytes);
      else this.#greet(bytes);
    } catch (error) {
      this.fail(error);
    }
  };

  /** The error for a stream that ended, with what it said. */
  #ended(): BackendUnavailableError {
    const said = `${this.#errors}${this.#frames ? "" : this.#text}`.trim();
    return new BackendUnavailableError(`The supervisor ended${said === "" ? "" : `: ${said}`}`, {
      remedy: "It needs a POSIX shell, `sh`. If there is one, call again to start a new supervisor.",
    });
  }

  #greet(bytes: Buffer): void {
    // Not decoded as UTF-8, because binary frames may follow in the same chunk.
    this.#text += bytes.toString("latin1");
    if (this.#text.startsWith(supervisorMagic)) {
      this.#frames = this.#frameReader();
      this.#frames.push(Buffer.from(this.#text.slice(supervisorMagic.length), "latin1"));
    } else if (this.#text.startsWith(shellMagic) && this.#text.endsWith("\nend\n")) {
      const text = Buffer.from(this.#text.slice(shellMagic.length), "latin1").toString();
      this.#answer({ inventory: readGreeting(text).inventory, supervisor: undefined });
    }
    if (this.#text.length > longestGreeting) throw this.#ended();
  }

  #answer(answer: SupervisorAnswer): void {
    if (this.#failed) return;
    this.#answered = true;
    this.settled();
    this.#outcome.resolve(answer);
  }

  /** Only the first greeting counts; otherwise, each one would cause a connection. */
  #frameReader(): FrameReader {
    const report = (type: number, _: number, payload: Buffer): void => {
      if (type !== frameType.hello || this.#greeted) return;
      this.#greeted = true;
      void this.#open(readGreeting(payload.toString()));
    };
    return new FrameReader({ output: () => {}, report });
  }

  async #open({ inventory, socket }: { inventory: SupervisorInventory; socket: string | undefined }): Promise<void> {
    const { socket: expected } = this.#options;
    // A forged greeting must not choose the socket.
    const made = expected !== undefined && socket === path.basename(expected);
    const direct = made ? await this.#connect(expected) : undefined;
    const { stdin, stdout } = this.#streams;
    const lose = (error: Error): void => this.fail(error);
    const { isCut } = this.#options;
    const { last, interpreters, hasRuns = false, watcher } = inventory;
    const settings = { direct: direct !== undefined, lose, isCut, last, interpreters, hasRuns, watcher };
    const supervisor = new Supervisor(direct?.socket ?? stdin, settings);
    direct?.receive(supervisor.receiver());
    stdout.off("data", this.#take).on("data", supervisor.receiver());
    this.#supervisor = supervisor;
    this.#answer({ inventory, supervisor });
  }

  async #connect(file: string): Promise<DirectConnection | undefined> {
    const direct = await connectDirectly(file);
    if (!direct) return undefined;
    const { socket } = direct;
    socket.on("error", (error) => this.fail(error));
    socket.on("close", () => this.fail(this.#ended()));
    // It may have been closed before there was a listener.
    if (socket.destroyed) this.fail(this.#ended());
    const { stdin } = this.#streams;
    if (stdin.destroyed) socket.destroy();
    else stdin.on("close", () => socket.destroy());
    return direct;
  }
}

/**
 * Reads a greeting: lines with a name and a value.
 *
 * @throws BackendUnavailableError if the place cannot be used.
 */
function readGreeting(text: string): { inventory: SupervisorInventory; socket: string | undefined } {
  const lines = text.split("\n").map((line) => line.split(" "));
  const value = (name: string): string | undefined =>
    lines
      .find(([first]) => first === name)
      ?.slice(1)
      .join(" ");
  const problem = value("problem");
  if (problem !== undefined) {
    throw new BackendUnavailableError(`No directory for temporary files could be created: ${problem}`, {
      remedy: "Make sure that the session's directory, usually below /tmp, can be created and written to.",
    });
  }
  const programs = lines.flatMap(([first, name = "", ...place]): [string, string][] =>
    // BusyBox reports built-in programs by name, without a path.
    first === "program" && (place[0]?.startsWith("/") === true || place[0] === name) ? [[name, place.join(" ")]] : [],
  );
  const mounts = lines.flatMap(([first, identity = "", ...place]): [string, string][] =>
    first === "mount" ? [[place.join(" "), identity]] : [],
  );
  const [nodeVersion, probe, packages, kernel] = [value("node"), value("probe"), value("packages"), value("kernel")];
  const watcher = value("watcher");
  const living = lines.flatMap(([first, number, displays]) =>
    first === "interpreter" ? [{ number: Number(number), displays: displays === "1" }] : [],
  );
  const inventory = {
    programs: new Map(programs),
    owner: { uid: Number(value("uid")), gid: Number(value("gid")) },
    process: Number(value("self")),
    last: Number(value("last") ?? 0),
    mounts: new Map(mounts),
    ...(kernel === undefined ? {} : { kernel }),
    ...(value("interpreters") === undefined ? {} : { interpreters: { living } }),
    ...(value("runs") === undefined ? {} : { hasRuns: true }),
    ...(watcher === undefined ? {} : { watcher }),
    ...(nodeVersion === undefined ? {} : { nodeVersion }),
    ...(probe === undefined ? {} : { probe }),
    ...(packages === undefined ? {} : { packages: packages.split(" ").filter((name) => /^[\w.-]{1,64}$/.test(name)) }),
  };
  return { inventory, socket: value("socket") };
}

function notAnswered(): BackendUnavailableError {
  return new BackendUnavailableError(`The supervisor did not answer within ${answerMs / 1000} s`, {
    remedy: "Check that programs can be started there, and that standard input and output are connected.",
  });
}
