import type { Duplex } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import type Docker from "dockerode";
import { FrameReader, frameType } from "../channel/frames.ts";
import { StreamDemultiplexer } from "../channel/stream-demultiplexer.ts";
import type { BlockRunner } from "./block-runner.ts";
import { ExecRunner } from "./exec-runner.ts";
import { readGreeting } from "./greeting.ts";
import { SupervisorRunner } from "./supervisor-runner.ts";

/** What stands around a stream to a container's supervisor. */
export interface RunnerContext {
  readonly docker: Docker;
  readonly container: Docker.Container;
  /** A directory of the session in the container. */
  readonly directory: string;
  /** The user that blocks run as; `undefined`: the container's. */
  readonly user: string | undefined;
  /** Told, once, that the container cannot be used any more. */
  readonly lose: (error: Error) => void;
}

const supervisorMagic = "FENCED1\n";
const shellMagic = "FENCED0\n";
const longestGreeting = 1_048_576;

/**
 * Waits for the greeting of what runs in the container, and takes over its stream.
 *
 * @throws BackendUnavailableError if the stream ends before, with what was said instead.
 */
export function connectRunner(stream: Duplex, context: RunnerContext): Promise<BlockRunner> {
  return new Promise((resolve, reject) => {
    const greeting = new GreetingReader(stream, context, resolve);
    const fail = (error: Error): void => {
      context.lose(error);
      stream.destroy();
      reject(error);
    };
    const demultiplexer = new StreamDemultiplexer((name, bytes) => greeting.take(name, bytes));
    stream.on("data", (chunk: Buffer) => {
      try {
        demultiplexer.push(chunk);
      } catch (error) {
        fail(error instanceof Error ? error : new Error(String(error)));
      }
    });
    stream.on("error", fail);
    stream.on("close", () => fail(greeting.ended()));
    stream.on("end", () => fail(greeting.ended()));
  });
}

/** Tells from the first bytes who speaks, and hands the rest on. */
class GreetingReader {
  readonly #stream: Duplex;
  readonly #context: RunnerContext;
  readonly #resolve: (runner: BlockRunner) => void;
  #text = "";
  #errors = "";
  #frames: FrameReader | undefined;
  #supervisor: SupervisorRunner | undefined;

  constructor(stream: Duplex, context: RunnerContext, resolve: (runner: BlockRunner) => void) {
    this.#stream = stream;
    this.#context = context;
    this.#resolve = resolve;
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
      this.#resolve(new ExecRunner(readGreeting(text), this.#context));
    }
    if (this.#text.length > longestGreeting) throw this.ended();
  }

  #frameReader(): FrameReader {
    return new FrameReader({
      output: (type, block, bytes) => this.#supervisor?.output(type, block, bytes),
      report: (type, block, payload) => {
        if (type === frameType.hello && !this.#supervisor) {
          this.#supervisor = new SupervisorRunner(
            this.#stream,
            readGreeting(payload.toString()).inventory,
            this.#context.lose,
          );
          this.#resolve(this.#supervisor);
        } else {
          this.#supervisor?.report(type, block, payload);
        }
      },
    });
  }
}
