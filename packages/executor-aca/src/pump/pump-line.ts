import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, ByteQueue } from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import { encodeFrame, type FrameConsumer, FrameReader, frameType, Tunnels } from "@fenced/executor-kit/supervisor";
import type { ExecutionAnswer, SessionApi } from "../api/session-api.ts";
import { isSessionGone } from "../http/service-error.ts";
import { callPump, installPump, interpreterForm, interpreterName, type PumpPlace, reasonOf } from "./pump-programs.ts";

/** What a step requests besides bytes. */
export interface StepOrder {
  /** Milliseconds to wait for something to report. */
  readonly wait: number;
  /** The block to start, unless it was started already. */
  readonly start?: BlockStart;
  /** The number of the block to end. */
  readonly stop?: number;
}

/** A block, as the pump receives it. */
export interface BlockStart {
  readonly number: number;
  readonly code: string;
  /** Whether the value of the last expression stays out of the output. */
  readonly quiet: boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly functions: object;
  readonly modules: object;
}

/** A step was not answered by the pump. */
export class PumpLostError extends Error {
  /** The result of `reasonOf`; `forged`: something else answers in the pump's place. */
  readonly reason: ReturnType<typeof reasonOf> | "forged";

  constructor(reason: PumpLostError["reason"], detail: string) {
    super(detail);
    this.reason = reason;
  }
}

/** The time limit of a step in the service, in milliseconds; steps take much less. */
const stepTimeoutMs = 5000;
/** Maximum bytes of a step; the pump sends at most as many. */
const mostBytes = 524_288;
/** How many answers to a step may not be the pump's: what a block displays may take their place. */
const mostForeign = 5;
/** Steps within which the socket for host functions must be open. */
const mostOpening = 10;
/** Frames that may queue for a session that accepts none; the connections' windows limit their bytes. */
const mostFrames = 65_536;
/** The largest journal; the scribe writes less. */
const longestJournal = 16 * 1024 * 1024;
const replyForm = /fenced ([0-9a-f]{64}) (\d{1,15}) (\d{1,15}) (\d{1,15}) (fine|left) ([A-Za-z0-9+/]*={0,2})/;

/**
 * Bytes to and from the pump of one session, in steps. Each side reports how much it has received, so sending a step twice
 * has no effect the second time. Code in the session shares the interpreter with the pump, so answers are not trusted.
 */
export class PumpLine {
  readonly place: PumpPlace;
  /** The number of the pump's last block. */
  current = 0;
  /** Where programs in the session call host functions; empty until the socket is open. */
  address = "";
  readonly #api: SessionApi;
  readonly #tunnels: Tunnels;
  #interpreter: string | undefined;
  #consumer: FrameConsumer | undefined;
  readonly #reader: FrameReader;
  #received = 0;
  #outgoing: Buffer[] = [];
  #sent = 0;
  #connections = 0;
  #wake: () => void = () => {};

  /** @param names - paths in the session that are the executor's own. */
  constructor(api: SessionApi, names: Pick<PumpPlace, "journal" | "directory">) {
    this.#api = api;
    this.place = { ...names, secret: randomBytes(32).toString("hex"), mark: randomBytes(16).toString("hex") };
    this.#tunnels = new Tunnels((type, number, payload) => this.#send(encodeFrame(type, number, payload)));
    this.#reader = new FrameReader({
      output: (...piece) => this.#consumer?.output(...piece),
      report: (type, number, payload) => {
        if (type === frameType.exit || type === frameType.display) this.#consumer?.report(type, number, payload);
        // A pong only ends the wait of a step.
        else if (type !== frameType.pong) this.#tunnels.report(type, number, payload);
      },
    });
  }

  /** Code that starts the pump, for `installed`. */
  get install(): string {
    return installPump(this.place);
  }

  /** Takes the answer to `install`. */
  installed({ result }: ExecutionAnswer): void {
    this.#interpreter = nameIn(result);
  }

  /**
   * Whether the interpreter that has the pump is, or may be, still there. Code in the session may have removed the pump.
   *
   * @throws the service's error if the whole session is gone.
   */
  async hasInterpreter(signal: AbortSignal): Promise<boolean> {
    const limits = { timeoutMs: stepTimeoutMs, maxOutput: 4096 };
    try {
      const { result } = await this.#api.execute({ code: interpreterName, ...limits, repeatable: true, signal });
      const name = nameIn(result);
      return name === undefined || this.#interpreter === undefined || name === this.#interpreter;
    } catch (error) {
      if (isSessionGone(error)) throw error;
      return true;
    }
  }

  /** Whether programs are connected, and may wait for an answer. */
  get isConnected(): boolean {
    return this.#connections > 0;
  }

  /** Whether there are bytes to send to the session. */
  get hasBytes(): boolean {
    return this.#outgoing.length > 0;
  }

  /** Passes a block's output, displays and end to `consumer` from now on. */
  follow(consumer: FrameConsumer): void {
    this.#consumer = consumer;
  }

  /** Opens the socket for host functions. @returns its address, as programs in the session use it. */
  async openCalls(accept: (connection: Duplex) => void, signal: AbortSignal): Promise<string> {
    const opening = this.#tunnels.openCalls((connection) => {
      this.#connections += 1;
      connection.once("close", () => (this.#connections -= 1));
      accept(connection);
    });
    this.address = "";
    opening.then((given) => (this.address = given)).catch(() => {});
    for (let step = 0; step < mostOpening && this.address === ""; step += 1) await this.step({ wait: 1000 }, signal);
    if (this.address === "") this.fail("the session did not open a socket for them");
    return opening;
  }

  /**
   * One exchange with the pump.
   *
   * @returns whether threads of the block are left, if the step was to end it.
   * @throws PumpLostError if the pump does not answer; errors of the service.
   */
  async step(order: StepOrder, signal: AbortSignal, repeatable = true): Promise<"fine" | "left"> {
    const bytes = this.#nextBytes();
    const { secret } = this.place;
    const given = { ...order, secret, taken: this.#received, at: this.#sent, data: bytes.toString("base64") };
    const code = callPump("step", JSON.stringify(given));
    for (let attempt = 1; ; attempt += 1) {
      const limits = { timeoutMs: stepTimeoutMs, maxOutput: 4096 };
      const answer = await this.#api.execute({ code, ...limits, repeatable, signal });
      const reply = typeof answer.result === "string" ? replyForm.exec(answer.result) : null;
      if (reply && answer.succeeded) return this.#take(reply, bytes.length);
      if (!answer.succeeded) throw asLost(answer);
      if (attempt >= mostForeign) throw new PumpLostError("forged", "Something other than the session's pump answered");
    }
  }

  /** Reads what the interpreter printed before it died, as far as the scribe recorded it. */
  async readJournal(read: () => Promise<AsyncIterable<Uint8Array>>, patienceMs: number): Promise<void> {
    const until = performance.now() + patienceMs;
    for (;;) {
      const bytes = await bytesOf(read).catch(() => Buffer.alloc(0));
      if (this.takeJournal(bytes) || performance.now() > until) return;
      await sleep(50);
    }
  }

  /** @returns whether this is the whole journal of this pump. */
  takeJournal(bytes: Buffer): boolean {
    const { mark } = this.place;
    const head = mark.length + 16;
    if (bytes.length < head || !isSame(bytes.subarray(0, mark.length).toString("latin1"), mark)) return false;
    const [base, length] = [bytes.readBigUInt64BE(mark.length), bytes.readBigUInt64BE(mark.length + 8)];
    if (length !== BigInt(bytes.length - head) || base > BigInt(this.#received)) return false;
    this.#push(bytes.subarray(head + this.#received - Number(base)));
    return true;
  }

  /** Waits until there are bytes to send to the session, for a moment at most. */
  async moment(milliseconds: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    this.#wake = () => over.abort();
    await sleep(milliseconds, undefined, { signal: joinSignals(signal, over.signal) }).catch(() => {});
    this.#wake = () => {};
  }

  /** Ends all connections. */
  fail(reason: string): void {
    this.#tunnels.fail(
      new BackendUnavailableError(`Code in the session cannot call host functions: ${reason}`, {
        remedy: "Call `restart()` for a new session.",
      }),
    );
  }

  #send(frame: Buffer): boolean {
    this.#outgoing.push(frame);
    if (this.#outgoing.length > mostFrames) this.fail("it accepts no answers");
    this.#wake();
    // The connections' windows and the number of frames limit what is queued.
    return true;
  }

  /** The bytes for the next step; they are kept until the pump has received them. */
  #nextBytes(): Buffer {
    const waiting = Buffer.concat(this.#outgoing);
    this.#outgoing = waiting.length > 0 ? [waiting] : [];
    return waiting.subarray(0, mostBytes);
  }

  #take(reply: RegExpExecArray, sent: number): "fine" | "left" {
    const [, secret = "", number = "", offset = "", taken = "", left, data = ""] = reply;
    const dropped = Number(taken) - this.#sent;
    const fits = Number(offset) === this.#received && dropped >= 0 && dropped <= sent;
    if (!isSame(secret, this.place.secret) || !fits) {
      throw new PumpLostError("forged", "Something other than the session's pump answered");
    }
    const [first] = this.#outgoing;
    if (first && dropped > 0) this.#outgoing.splice(0, 1, ...(dropped < first.length ? [first.subarray(dropped)] : []));
    this.#sent += dropped;
    this.current = Number(number);
    this.#push(Buffer.from(data, "base64"));
    return left === "left" ? "left" : "fine";
  }

  #push(bytes: Buffer): void {
    this.#received += bytes.length;
    try {
      this.#reader.push(bytes);
    } catch (error) {
      this.fail("something other than the session's pump answered");
      throw new PumpLostError("forged", error instanceof Error ? error.message : String(error));
    }
  }
}

function asLost({ stderr, error }: ExecutionAnswer): PumpLostError {
  const problem = `${stderr}\n${error?.message ?? ""}`.trim().slice(-2000);
  return new PumpLostError(reasonOf(problem), problem);
}

function nameIn(result: unknown): string | undefined {
  return typeof result === "string" ? interpreterForm.exec(result)?.[0] : undefined;
}

/** Compares in constant time. */
function isSame(one: string, other: string): boolean {
  const [given, known] = [Buffer.from(one), Buffer.from(other)];
  return given.length === known.length && timingSafeEqual(given, known);
}

async function bytesOf(read: () => Promise<AsyncIterable<Uint8Array>>): Promise<Buffer> {
  const bytes = new ByteQueue();
  for await (const piece of await read()) {
    bytes.add(piece);
    if (bytes.length > longestJournal) break;
  }
  return Buffer.from(bytes.take().buffer);
}
