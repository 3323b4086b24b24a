import { randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import {
  type ApproveHostCall,
  type HostCallError,
  type HostCallEvent,
  type HostFunction,
  isJsonValue,
  JsonLimitError,
  type JsonValue,
  parseJson,
} from "@fenced/core";
import { followSignals, untilAborted } from "@fenced/core/abort";
import { inThisContext } from "@fenced/core/telemetry";
import type { Sink } from "../run/sink.ts";
import { encodeFrame } from "../supervisor/wire/wire.ts";
import type { ExecutorTelemetry } from "../telemetry/executor-telemetry.ts";
import { callFrame, type CallFrame, longestInput, longestOutput, mostValues } from "./call-frames.ts";
import { CallSlots } from "./call-slots.ts";
import { programError } from "./program-error.ts";
import type { WaitingCall } from "./waiting-call.ts";

/** Maximum number of a block's calls that run at the same time. */
const mostAtOnce = 32;
/** Maximum number of a block's processes that are connected at the same time. */
const mostConnections = 64;

/** What a block may call, and the limits. */
export interface BlockCallSettings {
  /** The only functions that can be called, by name. */
  readonly functions: ReadonlyMap<string, HostFunction>;
  readonly approve: ApproveHostCall | undefined;
  /** Maximum number of calls that the block may make. */
  readonly maxCalls: number;
  /** The block's position in the list of blocks. */
  readonly index: number;
  /** Gets the events of the calls; its signal is the block's. */
  readonly sink: Sink<HostCallEvent>;
  readonly telemetry: ExecutorTelemetry;
  /** Waits until this program has the function. Default: it does not wait for functions that it does not have. */
  readonly ready?: (name: string, signal: AbortSignal) => Promise<void>;
}

/** A call that has not ended. */
interface OpenCall {
  readonly callId: string;
  readonly name: string;
  readonly started: number;
  readonly ending: AbortController;
}

/** The calls of one block, from all of its processes. */
export class BlockCalls {
  /** Identifies the block to the host. */
  readonly id: string = randomUUID();
  readonly #secret: Buffer = Buffer.from(randomBytes(32).toString("hex"));
  readonly #settings: BlockCallSettings;
  readonly #slots = new CallSlots(mostAtOnce);
  readonly #connections = new Set<Duplex>();
  readonly #open = new Set<OpenCall>();
  readonly #start: (connection: Connection, frame: CallFrame) => Promise<void>;
  #count = 0;
  #closed = false;

  constructor(settings: BlockCallSettings) {
    this.#settings = settings;
    // Frames arrive without an active span, but calls belong to the block's span.
    this.#start = inThisContext((connection, frame) => this.#call(connection, frame));
  }

  /** The secret with which programs identify themselves. */
  get token(): string {
    return `${this.id}.${this.#secret.toString()}`;
  }

  /** Compares the block's secret in constant time. */
  knows(secret: string): boolean {
    const given = Buffer.from(secret);
    const same = given.length === this.#secret.length;
    return timingSafeEqual(this.#secret, same ? given : Buffer.alloc(this.#secret.length)) && same;
  }

  /** Answers the calls on a connection until it ends, or until something arrives that no stub would send. */
  async serve(stream: Duplex, frames: AsyncIterable<CallFrame>): Promise<void> {
    if (this.#closed || this.#connections.size >= mostConnections) return;
    const connection: Connection = { stream, calls: new Map() };
    this.#connections.add(stream);
    try {
      for await (const frame of frames) {
        if (frame.type === callFrame.cancel) connection.calls.get(frame.id)?.abort();
        else if (frame.type !== callFrame.call || connection.calls.has(frame.id)) return;
        else if (await this.#slots.take()) void this.#start(connection, frame);
        else return;
      }
    } finally {
      this.#connections.delete(stream);
      for (const call of connection.calls.values()) call.abort();
    }
  }

  /** Answers a call that has waited in the place. */
  async take({ payload, ending, begin, answer }: WaitingCall): Promise<void> {
    if (!(await this.#slots.take())) return;
    const unfollow = followSignals(ending, [this.#settings.sink.signal]);
    try {
      const { frame } = await this.#answer(payload, ending, begin);
      answer(frame.type, frame.payload);
    } catch {
      // Nobody waits any more.
    } finally {
      unfollow();
      this.#slots.release();
    }
  }

  /** Call this when the program has ended: stops answering and aborts running calls. */
  close(): void {
    if (this.#closed) return;
    for (const call of this.#open) {
      const error = { name: "AbortError", message: "The program ended before the call did" };
      void this.#end(call, { error });
      call.ending.abort(new DOMException(error.message, error.name));
    }
    this.#closed = true;
    this.#slots.close();
    for (const stream of this.#connections) stream.destroy();
  }

  async #call(connection: Connection, { id, payload }: CallFrame): Promise<void> {
    const ending = new AbortController();
    const unfollow = followSignals(ending, [this.#settings.sink.signal]);
    connection.calls.set(id, ending);
    try {
      const { frame, room } = await this.#answer(payload, ending);
      await Promise.all([room, written(connection.stream, encodeFrame(frame.type, id, frame.payload))]);
    } catch {
      // Something other than a stub sent this.
      connection.stream.destroy();
    } finally {
      unfollow();
      connection.calls.delete(id);
      this.#slots.release();
    }
  }

  /** @param begin - called before anything is done for the call. */
  async #answer(
    payload: Buffer,
    ending: AbortController,
    begin?: () => void,
  ): Promise<{ readonly frame: Omit<CallFrame, "id">; readonly room?: Promise<void> | undefined }> {
    if (this.#closed) throw new Error("the block has ended");
    this.#count += 1;
    const { maxCalls } = this.#settings;
    if (this.#count > maxCalls) return { frame: errorFrame(refusal("calls", maxCalls)) };
    const { name, input, problem } = parseCall(payload);
    if (problem !== undefined) return { frame: errorFrame({ name: "HostCallLimitError", message: problem }) };
    const call: OpenCall = { callId: randomUUID(), name, started: performance.now(), ending };
    await this.#settings.ready?.(name, ending.signal);
    begin?.();
    const told = this.#settings.sink.write({ type: "host-call", callId: call.callId, name, input });
    this.#open.add(call);
    try {
      // What has waited in the place must be known there to have begun.
      if (begin) await untilAborted(told ?? Promise.resolve(), ending.signal);
      const { output, bytes } = await this.#settings.telemetry.watchHostCall(call, input, () => this.#run(call, input));
      return { frame: { type: callFrame.result, payload: bytes }, room: this.#end(call, { output }) };
    } catch (thrown) {
      const error = programError(thrown);
      return { frame: errorFrame(error), room: this.#end(call, { error }) };
    }
  }

  /** Validates the arguments, asks for approval, and runs the call, but stops waiting when the program does. */
  async #run(call: OpenCall, input: JsonValue): Promise<{ readonly output: JsonValue; readonly bytes: Buffer }> {
    const { callId, name, ending } = call;
    const { signal } = ending;
    const wanted = this.#settings.functions.get(name);
    if (!wanted) throw refused("NameError", `There is no function ${JSON.stringify(name)}`);
    const checked = await untilAborted(wanted.checkInput(input), signal);
    if ("problem" in checked) throw refused("ArgumentError", `${name}: ${checked.problem}`);
    await untilAborted(this.#approve(wanted, { call, input, checked: checked.value }), signal);
    const result = await untilAborted(wanted.execute(checked.value, { callId, signal }), signal);
    // Functions that never throw return their errors; as JSON, an error would be an empty object.
    if (result instanceof Error) throw result;
    return serialised(name, result);
  }

  /** @throws if the executor or the function refuses the call. */
  async #approve(
    { approve: own, needsApproval: needs }: HostFunction,
    { call, input, checked }: { readonly call: OpenCall; readonly input: JsonValue; readonly checked: unknown },
  ): Promise<void> {
    const { approve, index } = this.#settings;
    const deciders = [approve, own].filter((each) => each !== undefined);
    if (deciders.length === 0) return;
    const { callId, name, ending } = call;
    const { signal } = ending;
    // JavaScript callers may return anything: here, everything but a clear no counts as yes; below, everything but a
    // clear yes counts as no.
    const said: unknown = typeof needs === "function" ? await needs(checked, { callId, signal }) : needs;
    const needsApproval = said !== false;
    for (const decide of deciders) {
      signal.throwIfAborted();
      const answer: { readonly approved: unknown; readonly reason?: unknown } = await decide({
        callId,
        name,
        index,
        input,
        needsApproval,
        signal,
      });
      if (answer.approved === true) continue;
      throw refused("NotApprovedError", `The call was not approved${asReason(answer.reason)}`);
    }
  }

  /** @returns when there is room for the event of another call. */
  #end(
    call: OpenCall,
    outcome: { readonly output: JsonValue } | { readonly error: HostCallError },
  ): Promise<void> | undefined {
    if (!this.#open.delete(call)) return undefined;
    const { callId, name, started } = call;
    const durationMs = performance.now() - started;
    return this.#settings.sink.write({ type: "host-result", callId, name, ...outcome, durationMs });
  }
}

/** One process of the block, and its pending calls. */
interface Connection {
  readonly stream: Duplex;
  readonly calls: Map<number, AbortController>;
}

/** Waits until the program has received the frame or the connection has ended. */
async function written(stream: Duplex, frame: Buffer): Promise<void> {
  if (stream.destroyed || stream.write(frame)) return;
  const left = new AbortController();
  const { signal } = left;
  await Promise.race([once(stream, "drain", { signal }), once(stream, "close", { signal })]).catch(() => {});
  left.abort();
}

function parseCall(payload: Buffer): { name: string; input: JsonValue; problem?: string } {
  const end = payload.indexOf("\n");
  if (end < 0) throw new Error("not a call");
  const [name, text] = [payload.subarray(0, end).toString(), payload.subarray(end + 1)];
  if (text.length > longestInput) return { name, input: null, problem: refusal("arguments", longestInput).message };
  try {
    const input = parseJson(text, { maxValues: mostValues, maxDepth: Infinity });
    if (isJsonValue(input)) return { name, input };
    return { name, input: null, problem: "The arguments are nested too deeply" };
  } catch (error) {
    if (!(error instanceof JsonLimitError)) throw error;
    return { name, input: null, problem: refusal("values", mostValues).message };
  }
}

function serialised(name: string, result: unknown): { readonly output: JsonValue; readonly bytes: Buffer } {
  let text: unknown;
  try {
    text = JSON.stringify(result, errorAsText);
  } catch (cause) {
    throw refused("ResultError", `${name} returned a value that is not JSON: ${programError(cause).message}`);
  }
  const bytes = Buffer.from(typeof text === "string" ? text : "null");
  if (bytes.length > longestOutput) throw refused("HostCallLimitError", refusal("result", longestOutput).message);
  const output: unknown = isJsonValue(result) ? result : JSON.parse(bytes.toString());
  if (!isJsonValue(output)) throw refused("ResultError", `${name} returned a value that is nested too deeply`);
  return { output, bytes };
}

function errorAsText(_: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { name, message } = programError(value);
  return `${name}: ${message}`;
}

function errorFrame(error: HostCallError): Omit<CallFrame, "id"> {
  return { type: callFrame.error, payload: Buffer.from(JSON.stringify(error)) };
}

function refusal(what: "calls" | "arguments" | "values" | "result", limit: number): HostCallError {
  const messages = {
    calls: `A block may call host functions at most ${limit} times: do the rest in the next block`,
    arguments: `The arguments take more than ${limit} bytes: write them to a file in the working directory, and pass its name`,
    values: `The arguments have more than ${limit} values: write them to a file in the working directory, and pass its name`,
    result: `The result takes more than ${limit} bytes: ask for less, or for a file`,
  };
  return { name: "HostCallLimitError", message: messages[what] };
}

function refused(name: string, message: string): Error {
  return Object.assign(new Error(message), { name });
}

function asReason(reason: unknown): string {
  return typeof reason === "string" && reason !== "" ? `: ${reason}` : "";
}
