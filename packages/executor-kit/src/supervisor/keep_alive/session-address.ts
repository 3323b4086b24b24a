import { randomBytes, randomUUID } from "node:crypto";
import {
  BackendUnavailableError,
  InvalidInputError,
  type JsonObject,
  parseComponentConfig,
  type SessionCallbacks,
  type SessionToConnect,
} from "@fenced/core";
import * as z from "zod";

/** What a session that outlives its program is reached with, wherever its place is. */
export interface SessionAddress {
  /** The abstract socket of its server. */
  readonly socket: string;
  /** The session's key. */
  readonly key: Uint8Array;
}

/** A session that an earlier program has left, as a handle describes it; each place adds where it is. */
export interface LeftSession extends SessionAddress {
  /** The id of the executor that created it. */
  readonly id: string;
}

/** A session to connect to. */
export type SessionToUse<Left extends LeftSession> = Left & { readonly takeOver: boolean };

/** The part of a handle that all places have. */
const addressSchema = z.object({
  id: z.uuid(),
  socket: z.string().regex(/^fenced-[0-9a-f-]{36}$/),
  key: z.base64().refine((text) => Buffer.from(text, "base64").length === 32, "must be 32 bytes"),
});

/** Returns a new key, and a name that nobody else uses. */
export function newAddress(): SessionAddress {
  return { socket: `fenced-${randomUUID()}`, key: randomBytes(32) };
}

/**
 * The session's part of a handle.
 *
 * @param place - where it is.
 */
export function sessionToJson({ id, socket, key }: LeftSession, place: JsonObject): JsonObject {
  return { ...place, id, socket, key: Buffer.from(key).toString("base64") };
}

/** @throws ComponentError if the session's part of a handle is not valid. */
function sessionFromJson<Place extends object>(
  session: JsonObject,
  place: z.ZodType<Place, Place>,
  provider: string,
): LeftSession & Place {
  const { id: _, socket: __, key: ___, ...rest } = session;
  const address = parseComponentConfig(addressSchema, session, provider);
  return { ...parseComponentConfig(place, rest, provider), ...address, key: Buffer.from(address.key, "base64") };
}

/**
 * Makes the `connect` of a component whose sessions outlive their programs.
 *
 * @param place - the schema of what a handle says about where a session is.
 * @param create - creates the executor that connects to a session.
 * @param isCutOff - whether a session with these options reaches the network only through its program, so that a list of hosts
 *   would limit it. Default: it never does.
 */
export function connectingTo<T, Options extends object, Place extends object>(
  provider: string,
  place: z.ZodType<Place, Place>,
  create: (options: Options & SessionCallbacks, left: SessionToUse<LeftSession & Place>) => T,
  isCutOff: (options: Options) => boolean = () => false,
): (options: Options, session: SessionToConnect) => T {
  return (options, { session, takeOver, callbacks }) => {
    const left = { ...sessionFromJson(session, place, provider), takeOver };
    if (callbacks.network && !isCutOff(options)) throw notCutOff();
    return create({ ...options, ...callbacks }, left);
  };
}

function notCutOff(): InvalidInputError {
  return new InvalidInputError("`network` cannot limit this session: it has a network of its own", {
    remedy: 'Leave `network` out, or begin sessions with `network: { allow }` or "none".',
    option: "network",
  });
}

/**
 * The error for a session that cannot be connected to because it is over.
 *
 * @param where - its place, such as "in the container NAME".
 * @param isLeft - an earlier program has left it.
 */
export function sessionHasEnded(where: string, isLeft: boolean, cause: Error): BackendUnavailableError {
  return new BackendUnavailableError(`The session ${where} has ended: ${cause.message}`, {
    remedy: isLeft
      ? "Nobody was connected to it for as long as its `keepAliveMs` says, or it was stopped: create a new executor."
      : "Call again to use a new one.",
    cause,
  });
}
