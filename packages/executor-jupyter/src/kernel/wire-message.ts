import { randomUUID } from "node:crypto";
import { JsonLimitError, measureJson, parseJson } from "@fenced/core";
import { displayLimits } from "@fenced/executor-kit/displays";
import { type IMessage, supportedKernelWebSocketProtocols } from "@jupyterlab/services/lib/kernel/messages.js";
import { deserialize } from "@jupyterlab/services/lib/kernel/serialize.js";
import { field, textField } from "../fields.ts";

/** Messages that this package sends to a kernel. Its own helper in the kernel answers those that begin with `fenced`. */
export type RequestType =
  | "execute_request"
  | "kernel_info_request"
  | "input_reply"
  | "fenced_request"
  | "fenced_calls"
  | "fenced_link"
  | "fenced_taken";

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

/** The field of a content that was left out because it has too many values: why. */
export const leftOutField = "fenced_left_out";

/** The protocol whose messages consist of parts; also that of messages on a stream to the helper. */
export const partsProtocol: string = supportedKernelWebSocketProtocols.v1KernelWebsocketJupyterOrg;
/** Maximum number of a message's buffers; the helper in the kernel sends at most a few hundred. */
const mostBuffers = 10_000;
/** Maximum number of values in a message's header, in that of its parent, and in its metadata. */
const mostHeaderValues = 10_000;

/**
 * The message in the data of the WebSocket; `undefined` if there is no valid one. Content with too many values is not
 * parsed: in its place, `leftOutField` gives the reason.
 *
 * @throws JsonLimitError if the message has too many values, and it cannot be said which part has.
 */
export function decodeMessage(data: Buffer | ArrayBuffer, isBinary: boolean, protocol: string): IMessage | undefined {
  try {
    const message = isBinary ? decodeBinary(arrayBufferOf(data), protocol) : parseJson(textOf(data), displayLimits);
    return isMessage(message) ? message : undefined;
  } catch (error) {
    if (error instanceof JsonLimitError) throw error;
    return undefined;
  }
}

/** Checks what the message contains before Jupyter's own function parses all of it. */
function decodeBinary(data: ArrayBuffer, protocol: string): unknown {
  if (protocol === partsProtocol) return decodeParts(data);
  const view = new DataView(data);
  const count = view.getUint32(0);
  if (count > mostBuffers) throw new JsonLimitError(`a message of more than ${mostBuffers} buffers`);
  const offsets = Array.from({ length: count }, (_, index) => view.getUint32(4 * (index + 1)));
  const [start = 0] = offsets;
  if (count === 0 || start < 4 * (count + 1) || !areInOrder(offsets, data)) return undefined;
  measureJson(new TextDecoder().decode(data.slice(start, offsets[1])), displayLimits);
  return deserialize(data, protocol);
}

/** Decodes a message of the protocol `v1.kernel.websocket.jupyter.org`, whose content is a part of its own. */
function decodeParts(data: ArrayBuffer): unknown {
  const view = new DataView(data);
  const count = Number(view.getBigUint64(0, true));
  if (count > mostBuffers) throw new JsonLimitError(`a message of more than ${mostBuffers} buffers`);
  const offsets = Array.from({ length: count }, (_, index) => Number(view.getBigUint64(8 * (index + 1), true)));
  if (!areInOrder(offsets, data)) return undefined;
  const parts = offsets.slice(0, -1).map((start, index) => data.slice(start, offsets[index + 1]));
  const [channel, header, parent, metadata, content, ...buffers] = parts;
  if (!channel || !header || !parent || !metadata || !content) return undefined;
  const small = { maxValues: mostHeaderValues };
  return {
    channel: new TextDecoder().decode(channel),
    header: parseJson(new Uint8Array(header), small),
    parent_header: parseJson(new Uint8Array(parent), small),
    metadata: parseJson(new Uint8Array(metadata), small),
    content: parseContent(content),
    buffers: buffers.map((buffer) => new DataView(buffer)),
  };
}

/** Parts that overlap could be many times as long as the message, and any of them could be measured in place of another. */
function areInOrder(offsets: readonly number[], { byteLength }: ArrayBuffer): boolean {
  return offsets.every((offset, index) => offset <= (offsets[index + 1] ?? byteLength));
}

function parseContent(content: ArrayBuffer): unknown {
  try {
    return parseJson(new Uint8Array(content), displayLimits);
  } catch (error) {
    if (error instanceof JsonLimitError) return { [leftOutField]: error.message };
    throw error;
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
