import type { Socket } from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import type Docker from "dockerode";
import { connectDirectly } from "../channel/direct-channel.ts";
import { FrameReader, frameType } from "../channel/frames.ts";
import { StreamDemultiplexer } from "../channel/stream-demultiplexer.ts";
import type { BlockRunner } from "./block-runner.ts";
import { ExecRunner } from "./exec-runner.ts";
import { readGreeting, type Greeting } from "./greeting.ts";
import { SupervisorRunner } from "./supervisor-runner.ts";

/** What stands around a stream to a container's supervisor. */
export interface RunnerContext {
  readonly docker: Docker;
  readonly container: Docker.Container;
  /** A directory of the session in the container. */
  readonly directory: string;
  /** The directory of this host that may be the container's work directory. */
  readonly workDirectory: string;
  /** The name in it that the supervisor was told to give its socket; `undefined`: it was not told to make one. */
  readonly socket: string | undefined;
  /** The user that blocks run as; `undefined`: the container's. */
  readonly user: string | undefined;
  /** Told, once, that the container cannot be used any more. */
  readonly lose: (error: Error) => void;
}

const supervisorMagic = "FENCED1\n";
const shellMagic = "FENCED0\n";
const longestGreeting = 1_048_576;

/**
 * Waits for the greeting of what runs in the container, and takes over its stream. If the supervisor has made a socket in
 * the work directory, and that is shared with this host, it is talked to over that, and the stream only holds it.
 *
 * @throws BackendUnavailableError if the stream ends before, with what was said instead.
 */
export function connectRunner(stream: Duplex, context: RunnerContext): Promise<BlockRunner> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      context.lose(error);
      stream.destroy();
      reject(error);
    };
    const greeting = new GreetingReader(stream, context, { resolve, fail });
    const demultiplexer = new StreamDemultiplexer((name, bytes) => greeting.take(name, bytes));
    stream.on("data", (chunk: Buffer) => failing(fail, () => demultiplexer.push(chunk)));
    stream.on("error", fail);
    stream.on("close", () => fail(greeting.ended()));
    stream.on("end", () => fail(greeting.ended()));
  });
}

/** What becomes of the wait for a greeting. */
interface Outcome {
  readonly resolve: (runner: BlockRunner) => void;
  /** Also later, when something is wrong with what comes from the container. */
  readonly fail: (error: Error) => void;
}

/** Tells from the first bytes who speaks, and hands the rest on. */
class GreetingReader {
  readonly #stream: Duplex;
  readonly #context: RunnerContext;
  readonly #outcome: Outcome;
  #text = "";
  #errors = "";
  #frames: FrameReader | undefined;
  #supervisor: SupervisorRunner | undefined;
  #opening = false;

  constructor(stream: Duplex, context: RunnerContext, outcome: Outcome) {
    this.#stream = stream;
    this.#context = context;
    this.#outcome = outcome;
  }

  take(name: "stdout" | "stderr", bytes: Buffer): void {
    if (name === "stderr") this.#errors = (this.#errors + bytes.toString()).slice(-2000);
    else if (this.#frames) this.#frames.push(bytes);
    else this.#greet(bytes);
  }

  /** Why the stream ended, as far as what came over it tells. */
  ended(): Error {
    const said = `${this.#errors}${this.#supervisor ? "" : this.#text}`.trim();
    return new BackendUnavailableError(`The supervisor in the container ended${said === "" ? "" : `: ${said}`}`, {
      remedy: "The image must have a POSIX shell as `sh`. If it has, call again: that uses a new container.",
    });
  }

  #greet(bytes: Buffer): void {
    // Not decoded as UTF-8: binary frames may follow in the same piece.
    this.#text += bytes.toString("latin1");
    if (this.#text.startsWith(supervisorMagic)) {
      this.#frames = this.#frameReader();
      this.#frames.push(Buffer.from(this.#text.slice(supervisorMagic.length), "latin1"));
    } else if (this.#text.startsWith(shellMagic) && this.#text.endsWith("\nend\n")) {
      const text = Buffer.from(this.#text.slice(shellMagic.length), "latin1").toString();
      this.#outcome.resolve(new ExecRunner(readGreeting(text), this.#context));
    }
    if (this.#text.length > longestGreeting) throw this.ended();
  }

  #frameReader(): FrameReader {
    return new FrameReader({
      output: (type, block, bytes, memory) => this.#supervisor?.output(type, block, bytes, memory),
      report: (type, block, payload) => {
        if (type !== frameType.hello) this.#supervisor?.report(type, block, payload);
        else if (!this.#opening) {
          // Only the first one: each would be connected to.
          this.#opening = true;
          void this.#open(readGreeting(payload.toString()));
        }
      },
    });
  }

  async #open({ inventory, socket }: Greeting): Promise<void> {
    // Who forges a greeting does not get to choose the socket.
    const made = socket !== undefined && socket === this.#context.socket;
    const direct = made ? await this.#connect(socket) : undefined;
    const channel = { direct: direct !== undefined, lose: this.#context.lose };
    this.#supervisor = new SupervisorRunner(direct ?? this.#stream, inventory, channel);
    this.#outcome.resolve(this.#supervisor);
  }

  async #connect(name: string): Promise<Socket | undefined> {
    const frames = this.#frameReader();
    const { fail } = this.#outcome;
    const file = path.join(this.#context.workDirectory, name);
    const socket = await connectDirectly(file, (bytes, memory) => failing(fail, () => frames.push(bytes, memory)));
    if (!socket) return undefined;
    socket.on("error", fail);
    socket.on("close", () => fail(this.ended()));
    // It may have closed before anybody listened.
    if (socket.destroyed) fail(this.ended());
    if (this.#stream.destroyed) socket.destroy();
    else this.#stream.on("close", () => socket.destroy());
    return socket;
  }
}

function failing(fail: (error: Error) => void, action: () => void): void {
  try {
    action();
  } catch (error) {
    fail(error instanceof Error ? error : new Error(String(error)));
  }
}
