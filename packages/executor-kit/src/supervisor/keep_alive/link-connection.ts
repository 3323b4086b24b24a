import { Heartbeat } from "../../processes/heartbeat.ts";
import type { SupervisorStreams } from "../start/connect-supervisor.ts";
import { type Packet, packetKind, type PacketReader, type PacketWriter } from "./packets.ts";

/** How often the session is asked for a sign of life, in milliseconds. */
const tickMs = 2000;
/** How many signs of life in a row may be missing. */
const patience = 4;
/** After so many milliseconds of silence, more than an answer takes, the connection may be broken. */
const silenceMs = 2.5 * tickMs;

/** One of the connections of a `SessionLink`, which ends when it breaks or the session is silent. */
export class LinkConnection {
  /** Resolves when it has ended. */
  readonly closed: Promise<void>;
  readonly #streams: SupervisorStreams;
  readonly #writer: PacketWriter;
  readonly #heartbeat: Heartbeat;
  readonly #pings: (() => void)[] = [];
  #end: () => void = () => {};
  #received = 0;
  #heard = performance.now();

  constructor(
    streams: SupervisorStreams,
    { reader, writer }: { readonly reader: PacketReader; readonly writer: PacketWriter },
    take: (packets: readonly Packet[]) => void,
  ) {
    this.#streams = streams;
    this.#writer = writer;
    const { stdin, stdout } = streams;
    this.closed = new Promise((resolve) => {
      this.#end = resolve;
    });
    for (const end of ["end", "close", "error"]) stdout.on(end, () => this.#end());
    for (const end of ["close", "error"]) stdin.on(end, () => this.#end());
    // Streams that have ended before this say so no more.
    if (stdin.destroyed || stdout.destroyed || stdout.readableEnded) this.#end();
    stdout.on("data", (bytes: Buffer) => {
      this.#heard = performance.now();
      try {
        take(reader.push(bytes));
      } catch {
        // Something else has written to it.
        this.close();
      }
    });
    this.#heartbeat = new Heartbeat({
      name: "the session",
      tickMs,
      patience,
      ping: () => this.#ping(),
      onLost: () => this.close(),
    });
    void this.closed.then(() => this.close());
  }

  begin(): void {
    this.#streams.stdout.resume();
  }

  send(kind: number, received: number, payload?: Uint8Array): void {
    this.#received = received;
    if (this.#streams.stdin.writable) this.#streams.stdin.write(this.#writer.packet(kind, received, payload));
  }

  /** True if nothing has arrived for so long that it may be broken. */
  get isSilent(): boolean {
    return performance.now() - this.#heard > silenceMs;
  }

  ponged(): void {
    this.#pings.shift()?.();
  }

  close(): void {
    this.#heartbeat.stop();
    closeStreams(this.#streams);
    this.#end();
  }

  #ping(): Promise<void> {
    return new Promise((resolve) => {
      this.#pings.push(resolve);
      this.send(packetKind.ping, this.#received);
    });
  }
}

/** Closes both streams; their errors no longer matter. */
export function closeStreams({ stdin, stdout }: SupervisorStreams): void {
  stdin.on("error", () => {}).destroy();
  stdout.on("error", () => {}).destroy();
}
