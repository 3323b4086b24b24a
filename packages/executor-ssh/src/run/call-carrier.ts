import type { Duplex } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { encodeFrame, FrameReader, hostMagic, Tunnels } from "@fenced/executor-kit/supervisor";
import type { SshConnection } from "../connection/ssh-connection.ts";
import type { SshProcess } from "../connection/ssh-process.ts";
import { untilGreeting } from "../connection/until-greeting.ts";
import { carrierFor } from "../remote/remote-program.ts";

/** Time limit for the carrier to open its socket in milliseconds. */
const openingMs = 30_000;

/**
 * Carries connections from programs on the remote host to this process, over one more session of the connection, which
 * sshd allows whatever else it forbids. Code there can end the carrier or write in its place; this ends all
 * connections and nothing else.
 */
export class CallCarrier {
  readonly #process: SshProcess;
  readonly #tunnels: Tunnels;
  readonly #reader: FrameReader;
  #ended = false;

  private constructor(process: SshProcess, greeting: string) {
    this.#process = process;
    const { child } = process;
    this.#tunnels = new Tunnels((type, number, payload) => child.stdin.write(encodeFrame(type, number, payload)));
    this.#reader = new FrameReader({
      output: () => {
        throw new Error("it sent an invalid frame");
      },
      report: (type, number, payload) => this.#tunnels.report(type, number, payload),
    });
    child.stdin.write(hostMagic);
    untilGreeting(child.stdout, greeting).then(
      () => child.stdout.on("data", (bytes: Buffer) => this.#take(bytes)).resume(),
      (error: unknown) => this.#end(String(error)),
    );
    child.stdin.on("drain", () => this.#tunnels.resume());
    child.stderr.resume();
    child.on("error", (error) => this.#end(String(error)));
    child.on("close", () => this.#end("the program that carries the calls ended"));
    // Only the blocks keep Node alive.
    process.unref();
  }

  /**
   * Starts the carrier, which passes connections to `accept`.
   *
   * @param python - the interpreter there.
   * @returns the carrier, and the socket's address as programs there use it.
   * @throws BackendUnavailableError if it does not start.
   */
  static async open(
    connection: SshConnection,
    { python, accept }: { readonly python: string; readonly accept: (connection: Duplex) => void },
    signal: AbortSignal,
  ): Promise<{ readonly carrier: CallCarrier; readonly address: string }> {
    const greeting = `fenced-calls-${connection.nonce}`;
    const process = connection.run("calls", carrierFor(python, connection.greeting.directory, greeting));
    process.child.stdin.uncork();
    const carrier = new CallCarrier(process, greeting);
    const late = setTimeout(
      () => carrier.#end(`the program that carries the calls did not start within ${openingMs / 1000} s`),
      openingMs,
    );
    try {
      return { carrier, address: await untilAborted(carrier.#tunnels.openCalls(accept), signal) };
    } catch (error) {
      carrier.#end("the start was aborted or failed");
      throw error;
    } finally {
      clearTimeout(late);
    }
  }

  /** Whether programs can connect. */
  get isOpen(): boolean {
    return !this.#ended;
  }

  /** Ends all connections. */
  close(): void {
    this.#end("the session was reset");
  }

  #take(bytes: Buffer): void {
    if (this.#ended) return;
    try {
      this.#reader.push(bytes);
    } catch {
      this.#end("something answered that is not the program that carries the calls");
    }
  }

  #end(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#tunnels.fail(
      new BackendUnavailableError(`Code on the remote host cannot call host functions: ${reason}`, {
        remedy: "Check that Python 3.8 or later works there, and that sshd allows one more session (MaxSessions).",
      }),
    );
    this.#process.kill();
  }
}
