import { randomUUID } from "node:crypto";
import type { IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { deserialize } from "@jupyterlab/services/lib/kernel/serialize.js";
import { field, textField } from "../fields.ts";

/** Messages that this package sends to a kernel. Its own helper in the kernel answers those that begin with `fenced`. */
export type RequestType = "execute_request" | "kernel_info_request" | "input_reply" | "fenced_request" | "fenced_calls";

/** Where a message travels. */
export type RequestChannel = "shell" | "control" | "stdin";

/** A new message for a kernel. */
export function createRequest(
  type: RequestType,
  channel: RequestChannel,
  session: string,
  content: Readonly<Record<string, unknown>>,
  buffers: readonly Uint8Array[] = [],
): IMessage {
  const message: unknown = {
    channel,
    header: {
      msg_id: randomUUID(),
      msg_type: type,
      session,
      username: "fenced",
      date: new Date().toISOString(),
      version: "5.3",
    },
    parent_header: {},
    metadata: {},
    content,
    buffers: buffers.map((each) => arrayBufferOf(each)),
  };
  if (isMessage(message)) return message;
  throw new TypeError("not a kernel message");
}

/** The message in the data of the WebSocket; `undefined` if there is no valid one. */
export function decodeMessage(data: Buffer | ArrayBuffer, isBinary: boolean, protocol: string): IMessage | undefined {
  try {
    const message: unknown = isBinary ? deserialize(arrayBufferOf(data), protocol) : JSON.parse(textOf(data));
    return isMessage(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

function isMessage(value: unknown): value is IMessage {
  const content = field(value, "content");
  const isComplete = textField(value, "channel") !== "" && textField(field(value, "header"), "msg_type") !== "";
  return isComplete && typeof content === "object" && content !== null;
}

function arrayBufferOf(data: Uint8Array | ArrayBuffer): ArrayBuffer {
  return data instanceof ArrayBuffer ? data : new Uint8Array(data).buffer;
}

function textOf(data: Buffer | ArrayBuffer): string {
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString();
}
