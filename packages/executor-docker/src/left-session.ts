import { randomBytes, randomUUID } from "node:crypto";
import { type JsonObject, parseComponentConfig } from "@fenced/core";
import * as z from "zod";

/** A container whose session outlives its program, as a handle describes it. */
export interface LeftSession {
  /** The id of the executor that created it. */
  readonly id: string;
  /** The container's id. */
  readonly container: string;
  /** The abstract socket in the container. */
  readonly socket: string;
  /** The session's key. */
  readonly key: Uint8Array;
}

/** A session to connect to. */
export interface SessionToUse extends LeftSession {
  readonly takeOver: boolean;
}

/** What a new session is reached with. */
export type SessionAddress = Pick<LeftSession, "socket" | "key">;

const schema = z.strictObject({
  id: z.uuid(),
  container: z.string().regex(/^[0-9a-f]{12,64}$/),
  socket: z.string().regex(/^fenced-[0-9a-f-]{36}$/),
  key: z.base64().refine((text) => Buffer.from(text, "base64").length === 32, "must be 32 bytes"),
});

/** Returns a new key, and a name that nobody else uses. */
export function newAddress(): SessionAddress {
  return { socket: `fenced-${randomUUID()}`, key: randomBytes(32) };
}

/** The part of a handle that is Docker's. */
export function sessionToJson({ id, container, socket, key }: LeftSession): JsonObject {
  return { id, container, socket, key: Buffer.from(key).toString("base64") };
}

/** @throws ComponentError if it is not valid. */
export function sessionFromJson(session: JsonObject, provider: string): LeftSession {
  const parsed = parseComponentConfig(schema, session, provider);
  return { ...parsed, key: Buffer.from(parsed.key, "base64") };
}
