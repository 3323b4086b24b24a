import { randomBytes } from "node:crypto";
import { BackendUnavailableError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { PlaceGone } from "../../place.ts";
import type { SupervisorStreams } from "../start/connect-supervisor.ts";
import {
  encodeGreeting,
  encodeStart,
  isSame,
  linkMagic,
  nonceBytes,
  type Packet,
  packetKind,
  PacketReader,
  PacketWriter,
  proofBytes,
  prove,
} from "./packets.ts";

/** What `attach.py` says if there is no session any more. */
const overSentence = "the session is over";
/** What may precede the session's answer, for example what a login shell prints. */
const longestNoise = 262_144;
const answerMs = 30_000;

/** Who connects, and with what it goes on. */
export interface Caller {
  readonly key: Uint8Array;
  /** Identifies the program to the session. */
  readonly program: Uint8Array;
  /** On the very first connection: how long the session waits for a program. Default: not the first connection. */
  readonly keepAliveMs?: number;
  readonly takeOver: boolean;
  readonly isKnown: boolean;
  readonly received: number;
}

/** A connection to a session, which has proved that it knows the key. */
export interface Answer {
  readonly verdict: number;
  /** Bytes of the program that the session has received. */
  readonly received: number;
  readonly writer: PacketWriter;
  readonly reader: PacketReader;
  /** Packets that arrived with the answer. */
  readonly rest: readonly Packet[];
}

/**
 * Proves to a session that this program knows its key, and the other way round. The stream is paused when this returns.
 *
 * @throws PlaceGone if the session is over; BackendUnavailableError if it does not answer within 30 s, or something else
 * does; with what it said on standard error.
 */
export async function shakeHands(streams: SupervisorStreams, caller: Caller): Promise<Answer> {
  const { stdin, stdout, stderr } = streams;
  const greeting = encodeGreeting({ ...caller, nonce: randomBytes(nonceBytes) });
  // They may fail while nobody listens, before and after this.
  for (const stream of [stdin, stdout]) stream.on("error", () => {});
  const start = caller.keepAliveMs === undefined ? [] : [encodeStart(caller.key, caller.keepAliveMs)];
  stdin.write(Buffer.concat([...start, linkMagic, greeting]));
  let said = "";
  const listen = (bytes: Buffer): void => {
    said = (said + bytes.toString()).slice(-2000);
  };
  stderr?.on("data", listen);
  const shaking = new Handshake(caller, greeting, (bytes) => stdin.write(bytes));
  let leave = (): void => {};
  try {
    const answer = new Promise<Answer>((resolve, reject) => {
      const take = (bytes: Buffer): void => {
        try {
          const found = shaking.push(bytes);
          if (!found) return;
          // At once: what follows is for the connection, even if it arrives together with this.
          leave();
          resolve(found);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      const end = (): void => {
        // The last words may still be arriving.
        setTimeout(() => reject(notASession(said)), stderr ? 100 : 0);
      };
      stdout.on("data", take).on("end", end).on("close", end).on("error", end);
      stdin.on("error", end).on("close", end);
      // Something else may have read, and paused it.
      stdout.resume();
      // It may have ended before this.
      if (stdin.destroyed || stdout.destroyed || stdout.readableEnded) end();
      leave = () => {
        stdout.pause().off("data", take).off("end", end).off("close", end).off("error", end);
        stdin.off("error", end).off("close", end);
        stderr?.off("data", listen).resume();
      };
    });
    const found = await within(answerMs, answer);
    if (found) return found;
    throw notASession(said === "" ? `there was no answer within ${answerMs / 1000} s` : said);
  } finally {
    leave();
  }
}

/** The program's side of it, one chunk at a time. */
class Handshake {
  readonly #caller: Caller;
  readonly #greeting: Buffer;
  readonly #send: (bytes: Buffer) => void;
  #seen: Buffer = Buffer.alloc(0);
  #peer: { readonly reader: PacketReader; readonly writer: PacketWriter } | undefined;

  constructor(caller: Caller, greeting: Buffer, send: (bytes: Buffer) => void) {
    this.#caller = caller;
    this.#greeting = greeting;
    this.#send = send;
  }

  /** Returns the answer once it is complete. */
  push(bytes: Buffer): Answer | undefined {
    const packets = this.#peer ? this.#peer.reader.push(bytes) : this.#greet(bytes);
    const [first, ...rest] = packets;
    if (!first || !this.#peer) return undefined;
    if (first.kind !== packetKind.verdict || first.payload.length !== 9) throw notASession("its answer is not valid");
    const received = Number(first.payload.readBigUInt64BE(1));
    return { ...this.#peer, verdict: first.payload.readUInt8(0), received, rest };
  }

  #greet(bytes: Buffer): readonly Packet[] {
    this.#seen = Buffer.concat([this.#seen, bytes]);
    const at = this.#seen.indexOf(linkMagic);
    const start = at + linkMagic.length;
    if (at < 0 || this.#seen.length < start + nonceBytes + proofBytes) {
      if (this.#seen.length > longestNoise) throw notASession(this.#seen.toString().slice(-200));
      return [];
    }
    const { key } = this.#caller;
    const nonce = this.#seen.subarray(start, start + nonceBytes);
    const proof = this.#seen.subarray(start + nonceBytes, start + nonceBytes + proofBytes);
    const proofOf = (label: Parameters<typeof prove>[1]): Buffer => prove(key, label, this.#greeting, nonce);
    if (!isSame(proof, proofOf("session"))) throw notASession("it does not know the session's key");
    this.#send(proofOf("program"));
    const reader = new PacketReader(proofOf("from session"));
    this.#peer = { reader, writer: new PacketWriter(proofOf("from program")) };
    return reader.push(this.#seen.subarray(start + nonceBytes + proofBytes));
  }
}

function notASession(said: string): Error {
  const reason = said.trim();
  // What carries the connection may add how the program ended.
  if (reason.split("\n").includes(overSentence)) return new PlaceGone(overSentence);
  return new BackendUnavailableError(`The session did not answer${reason === "" ? "" : `: ${reason}`}`, {
    remedy: "Check that its place is still running; if so, call again.",
  });
}
