import { randomBytes } from "node:crypto";
import { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, ExecutorStoppedError, SessionInUseError } from "@fenced/core";
import { afterMs, joinSignals, untilAborted, within } from "@fenced/core/abort";
import { PlaceGone } from "../../place.ts";
import type { SupervisorStreams } from "../start/connect-supervisor.ts";
import { type Answer, shakeHands } from "./handshake.ts";
import { closeStreams, LinkConnection } from "./link-connection.ts";
import { type Packet, packetKind, pieceBytes, verdict } from "./packets.ts";
import { SentBytes } from "./sent-bytes.ts";

/** Bytes that were sent and have not arrived, beyond which nothing more is sent. */
const mostUnreceived = 1_048_576;
/** How many bytes are received before the session is told, if there is nothing else to send. */
const ackBytes = 262_144;
/** Delays between attempts to connect again, in milliseconds; the last one is repeated. */
const delays: readonly number[] = [0, 50, 100, 200, 500, 1000, 2000];
/** Time limit for an attempt to connect again in milliseconds. */
const attemptMs = 30_000;
/** Delays between the attempts to open a link to a session that exists, in milliseconds. */
const openingDelays: readonly number[] = [0, 100, 500];
/** Time limit for the last packet of a connection in milliseconds. */
const partingMs = 5000;

/** How to reach a session. */
export interface SessionAccess {
  /** The session's key, 32 bytes. */
  readonly key: Uint8Array;
  /** How long the session waits for a program, in milliseconds. */
  readonly keepAliveMs: number;
  /**
   * Opens a connection to the session.
   *
   * @throws PlaceGone if the session cannot exist any longer; after any other error, it is tried again.
   */
  readonly connect: (signal: AbortSignal) => Promise<SupervisorStreams>;
}

/** How to open a link. */
export interface LinkOptions extends SessionAccess {
  /** The first connection to a session that was created just now. Default: the session exists already. */
  readonly first?: SupervisorStreams;
  /** End the connection of another program that uses the session. */
  readonly takeOver: boolean;
  /** Cancels the opening. */
  readonly signal: AbortSignal;
}

/**
 * A stream to a session that outlives its connections: what was under way when one broke arrives over the next, exactly
 * once and in order. While there is no connection, the program on the other side goes on until its output has filled the
 * session's memory for it.
 */
export class SessionLink {
  /** Carries the supervisor's frames. Standard output ends when the session is over, or belongs to another program. */
  readonly streams: SupervisorStreams;
  readonly #access: SessionAccess;
  readonly #program: Buffer = randomBytes(16);
  readonly #stdin: Writable;
  readonly #stdout: Readable;
  readonly #sent = new SentBytes();
  readonly #ending = new AbortController();
  #received = 0;
  #told = 0;
  #connection: LinkConnection | undefined;
  /** Continues the writer that waits for room. */
  #onRoom: (() => void) | undefined;
  #error: Error | undefined;
  #isReplaced = false;
  /** The kind of the last packet, once that is sent. */
  #parting: number | undefined;
  readonly #onSettled: (() => void)[] = [];

  private constructor(access: SessionAccess) {
    this.#access = access;
    this.#stdin = new Writable({
      // Pieces that the caller has corked go in one packet.
      writev: (chunks, done) => this.#write(Buffer.concat(chunks.map(({ chunk }) => toBuffer(chunk))), done),
      destroy: (error, done) => {
        this.#lose(error ?? new Error("the stream was closed"));
        done(error);
      },
    });
    this.#stdout = new Readable({ read: () => {} });
    this.streams = { stdin: this.#stdin, stdout: this.#stdout };
    // It may be lost before or after somebody listens.
    for (const stream of [this.#stdin, this.#stdout]) stream.on("error", () => {});
  }

  /**
   * Connects to a session.
   *
   * @throws SessionInUseError if another program uses it; BackendUnavailableError if it does not answer; PlaceGone if it
   * is over.
   */
  static async open({ first, takeOver, signal, ...access }: LinkOptions): Promise<SessionLink> {
    const link = new SessionLink(access);
    let error: unknown;
    for (const delay of openingDelays) {
      if (delay > 0) await untilAborted(sleep(delay), signal);
      const streams = first ?? (await access.connect(signal));
      try {
        await link.#open(streams, { takeOver, signal, ...(first && { keepAliveMs: access.keepAliveMs }) });
        return link;
      } catch (thrown) {
        closeStreams(streams);
        error = thrown;
        // A connection that breaks before its session has answered may have been accepted: it is the same program that tries again.
        if (first || signal.aborted || !BackendUnavailableError.isInstance(thrown)) break;
      }
    }
    throw error;
  }

  async #open(
    streams: SupervisorStreams,
    { signal, ...first }: { readonly takeOver: boolean; readonly keepAliveMs?: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const answer = await untilAborted(this.#shake(streams, first), signal);
    if (answer.verdict === verdict.inUse) throw inUse();
    if (answer.verdict !== verdict.accepted) throw new PlaceGone("The session has forgotten this program");
    this.#use(streams, answer);
  }

  /** True while there is no connection, or one that may be broken, and the session may still be there. */
  get isCut(): boolean {
    return this.#error === undefined && this.#connection?.isSilent !== false;
  }

  /** True once another program uses the session. */
  get isReplaced(): boolean {
    return this.#isReplaced;
  }

  /** Lets go of the session, which then waits for another program. Never rejects. */
  async detach(): Promise<void> {
    await this.#part(packetKind.detach);
  }

  /**
   * Ends the session, unless it is another program's. If the connection is broken, waits 5 s for another one. Never
   * rejects.
   *
   * @returns whether the session was told, is another program's, or could not be reached, and ends when nobody has come
   *   back in time.
   */
  async end(): Promise<"told" | "replaced" | "unreachable"> {
    if (!this.#connection && !this.#error) await within(partingMs, this.#settled());
    const isTold = await this.#part(packetKind.end);
    if (this.#isReplaced) return "replaced";
    return isTold ? "told" : "unreachable";
  }

  /** Resolves when there is a connection again, or never will be. */
  #settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#onSettled.push(resolve);
    });
  }

  async #part(kind: number): Promise<boolean> {
    const connection = this.#connection;
    if (connection) {
      this.#parting = kind;
      connection.send(kind, this.#received);
      await within(partingMs, connection.closed);
    }
    this.#lose(new Error("the session was left"));
    return connection !== undefined;
  }

  #settle(): void {
    for (const each of this.#onSettled.splice(0)) each();
  }

  #shake(
    streams: SupervisorStreams,
    first?: { readonly takeOver: boolean; readonly keepAliveMs?: number },
  ): Promise<Answer> {
    return shakeHands(streams, {
      key: this.#access.key,
      program: this.#program,
      takeOver: false,
      isKnown: first === undefined,
      received: this.#received,
      ...first,
    });
  }

  #use(streams: SupervisorStreams, { reader, writer, received, rest }: Answer): void {
    const connection = new LinkConnection(streams, { reader, writer }, (packets) => this.#take(packets, connection));
    this.#connection = connection;
    this.#told = this.#received;
    this.#sent.rewind();
    void connection.closed.then(() => this.#cut(connection));
    this.#arrived(received);
    this.#take(rest, connection);
    connection.begin();
    this.#settle();
  }

  #take(packets: readonly Packet[], connection: LinkConnection): void {
    for (const { kind, received, payload } of packets) {
      if (this.#connection !== connection) return;
      this.#arrived(received);
      if (kind === packetKind.data) {
        this.#received += payload.length;
        this.#stdout.push(payload);
      } else if (kind === packetKind.pong) {
        connection.ponged();
      } else if (kind === packetKind.gone) {
        // The end of a session is not answered.
        if (this.#parting === packetKind.detach) connection.close();
        else this.#replaced();
        return;
      }
    }
    if (this.#received - this.#told < ackBytes) return;
    this.#told = this.#received;
    connection.send(packetKind.ack, this.#received);
  }

  #arrived(received: number): void {
    this.#sent.received(received);
    this.#sendOn();
    if (this.#sent.kept >= mostUnreceived) return;
    const onRoom = this.#onRoom;
    this.#onRoom = undefined;
    onRoom?.();
  }

  /** @param bytes - in memory of their own: the caller may use its memory again once this is done. */
  #write(bytes: Buffer, done: () => void): void {
    this.#sent.add(bytes);
    this.#sendOn();
    if (this.#sent.kept < mostUnreceived) done();
    else this.#onRoom = done;
  }

  /** Sends no more than the session has room for, so that signs of life do not wait behind it for long. */
  #sendOn(): void {
    while (this.#connection && this.#sent.underWay < mostUnreceived) {
      const piece = this.#sent.next(pieceBytes);
      if (!piece) return;
      this.#told = this.#received;
      this.#connection.send(packetKind.data, this.#received, piece);
    }
  }

  #cut(connection: LinkConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    if (!this.#error && this.#parting === undefined) void this.#again();
  }

  /** Connects again, until the session cannot be there any longer. */
  async #again(): Promise<void> {
    const { signal } = this.#ending;
    const { keepAliveMs } = this.#access;
    const end = performance.now() + keepAliveMs;
    let last: unknown;
    for (let attempt = 0; performance.now() < end || attempt === 0; attempt += 1) {
      const limit = new AbortController();
      const stop = afterMs(attemptMs, () => limit.abort(tooLate()));
      try {
        await sleep(delays[Math.min(attempt, delays.length - 1)], undefined, { signal });
        if (await this.#tryAgain(joinSignals(signal, limit.signal))) return;
      } catch (error) {
        last = error;
        if (error instanceof PlaceGone) this.#lose(error);
      } finally {
        stop();
      }
      if (signal.aborted) return;
    }
    this.#lose(notBack(last, keepAliveMs));
  }

  /** Returns whether the session has answered, whatever it said. */
  async #tryAgain(signal: AbortSignal): Promise<boolean> {
    const connecting = this.#access.connect(signal);
    // It may come too late.
    const streams = await untilAborted(connecting, signal).catch((error: unknown) => {
      void connecting.then(closeStreams, () => {});
      throw error;
    });
    try {
      const answer = await untilAborted(this.#shake(streams), signal);
      if (answer.verdict === verdict.accepted) {
        this.#use(streams, answer);
        return true;
      }
      if (answer.verdict === verdict.replaced) this.#replaced();
      else this.#lose(new Error("the session has forgotten this program"));
    } catch (error) {
      closeStreams(streams);
      throw error;
    }
    closeStreams(streams);
    return true;
  }

  #replaced(): void {
    this.#isReplaced = true;
    this.#lose(takenOver());
  }

  #lose(error: Error): void {
    if (this.#error) return;
    this.#error = error;
    this.#ending.abort(error);
    this.#connection?.close();
    this.#connection = undefined;
    this.#stdout.destroy(error);
    this.#stdin.destroy();
    this.#settle();
  }
}

function toBuffer(chunk: unknown): Buffer {
  if (Buffer.isBuffer(chunk)) return chunk;
  throw new TypeError("only bytes can be written");
}

function inUse(): SessionInUseError {
  return new SessionInUseError("Another program uses this session", {
    remedy: "Connect when it has detached or ended, or set `takeOver: true` to cut it off.",
  });
}

function takenOver(): ExecutorStoppedError {
  return new ExecutorStoppedError("Another program has taken this session over", {
    remedy: "Create another executor, or connect to the session again with `takeOver: true`.",
  });
}

function tooLate(): BackendUnavailableError {
  return new BackendUnavailableError(`The session did not answer within ${attemptMs / 1000} s`, {
    remedy: "Check that the place of the session can be reached.",
  });
}

function notBack(cause: unknown, keepAliveMs: number): BackendUnavailableError {
  const reason = cause instanceof Error ? `: ${cause.message}` : "";
  return new BackendUnavailableError(`The session could not be reached for ${keepAliveMs / 1000} s${reason}`, {
    remedy: "It has ended by itself. Call again to start a new one.",
    cause,
  });
}
