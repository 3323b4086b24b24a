import fs from "node:fs";

// Kept here, because the module's exports are removed later.
const { readSync, writeSync } = fs;
/** The descriptor of the stream to the host: a socket that blocks, as this process has nothing else to do. */
const channel = 3;
/** The length of a frame, four bytes, and its type, one byte. */
const headerBytes = 5;
/** Maximum size of one frame in bytes; the host accepts no more. */
const mostBytes = 1_048_576;

/** The types of frames. The host has the same numbers, in `frames.ts`. */
export const frameType = {
  stdout: 1,
  stderr: 2,
  request: 3,
  done: 4,
  ready: 5,
  snapshot: 6,
  run: 7,
  answer: 8,
  badSnapshot: 9,
};

/**
 * Sends bytes in as many frames as needed; waits while the host does not read.
 *
 * @param {number} type
 * @param {Uint8Array} bytes
 */
export function sendAll(type, bytes) {
  for (let at = 0; at < bytes.length; at += mostBytes) send(type, bytes.subarray(at, at + mostBytes));
}

/**
 * Sends one frame.
 *
 * @param {number} type
 * @param {readonly Uint8Array[]} parts
 */
export function send(type, ...parts) {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32BE(parts.reduce((sum, { length }) => sum + length, 0));
  header.writeUInt8(type, 4);
  const frame = Buffer.concat([header, ...parts]);
  for (let at = 0; at < frame.length;) at += writeSync(channel, frame, at);
}

/**
 * Waits for the next frame.
 *
 * @returns {{ readonly type: number, readonly body: Buffer } | undefined} `undefined`: the host has ended.
 */
export function receive() {
  const header = read(headerBytes);
  const body = header && read(header.readUInt32BE());
  return header && body && { type: header.readUInt8(4), body };
}

/** @param {number} length */
function read(length) {
  const bytes = Buffer.allocUnsafe(length);
  for (let at = 0; at < length;) {
    const count = readSync(channel, bytes, at, length - at, null);
    if (count === 0) return undefined;
    at += count;
  }
  return bytes;
}

/**
 * A message of fields, and bytes that go with them.
 *
 * @param {object} fields
 * @param {Uint8Array} [bytes]
 * @returns {Uint8Array[]}
 */
export function packed(fields, bytes = new Uint8Array()) {
  const text = Buffer.from(JSON.stringify(fields));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return [length, text, bytes];
}

/**
 * @param {Buffer} body
 * @returns {{ readonly fields: any, readonly bytes: Buffer }}
 */
export function unpacked(body) {
  const end = 4 + body.readUInt32BE();
  return { fields: JSON.parse(body.toString("utf8", 4, end)), bytes: body.subarray(end) };
}

/**
 * Asks the host, and waits for its answer.
 *
 * @param {object} fields
 * @param {Uint8Array} [bytes]
 */
export function ask(fields, bytes) {
  send(frameType.request, ...packed(fields, bytes));
  const answer = receive();
  if (!answer) throw new Error("The host has ended.");
  return unpacked(answer.body);
}
