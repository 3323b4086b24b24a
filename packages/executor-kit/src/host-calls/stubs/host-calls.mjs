/**
 * Calls host functions from a block, or from any process that a block started. Each process has one connection, opened
 * by the first call; calls are numbered. As a program: `NAME JSON` prints what the function returns; `-` instead of the
 * JSON reads it from standard input.
 */
import { readFileSync } from "node:fs";
import net from "node:net";
import { pathToFileURL } from "node:url";

const [hello, call, result] = [1, 2, 16];
const longest = 1_048_576;

/** A host function failed, or could not be called. */
export class HostFunctionError extends Error {
  /**
   * @param {string} message
   * @param {string} name - the name of the host's error.
   */
  constructor(message, name) {
    super(message);
    this.name = name;
  }
}

/** @type {{ token: string, socket: net.Socket, waiting: Map<number, { resolve: (value: unknown) => void, reject: (error: Error) => void }> } | undefined} */
let connection;
let last = 0;

/**
 * @param {string} address
 * @param {string} token
 */
function connect(address, token) {
  const [, kind, place = ""] = /^(\w+):(.*)$/s.exec(address) ?? [];
  const [, host, port] = /^(.*):(\d+)$/.exec(place) ?? [];
  const socket = kind === "unix" ? net.connect(place) : net.connect(Number(port), host);
  const made = { token, socket, waiting: new Map() };
  /** @type {Buffer[]} */
  let parts = [];
  let size = 0;
  /** @param {Error} error */
  const end = (error) => {
    if (connection === made) connection = undefined;
    for (const { reject } of made.waiting.values()) reject(error);
    made.waiting.clear();
    socket.destroy();
  };
  socket.on("data", (/** @type {Buffer} */ chunk) => {
    parts.push(chunk);
    size += chunk.length;
    while (size >= 9) {
      const [first = chunk] = parts;
      const length = (first.length < 9 ? Buffer.concat(parts, 9) : first).readUInt32BE(0) + 4;
      if (size < length) return;
      const bytes = parts.length === 1 ? first : Buffer.concat(parts);
      parts = [bytes.subarray(length)];
      size -= length;
      answer(made, end, bytes.subarray(0, length));
    }
  });
  const lost = (/** @type {Error | undefined} */ error) =>
    end(
      new HostFunctionError(
        `The host cannot be reached: ${error?.message ?? "the connection ended"}`,
        "NotConnectedError",
      ),
    );
  socket.on("error", lost);
  socket.on("close", () => lost(undefined));
  socket.write(frame(hello, 0, Buffer.from(token)));
  return made;
}

/**
 * @param {NonNullable<typeof connection>} from
 * @param {(error: Error) => void} end
 * @param {Buffer} bytes
 */
function answer(from, end, bytes) {
  const [type, id] = [bytes.readUInt8(4), bytes.readUInt32BE(5)];
  const value = JSON.parse(bytes.subarray(9).toString());
  if (type !== result && id === 0) {
    end(new HostFunctionError(value.message, value.name));
    return;
  }
  const caller = from.waiting.get(id);
  from.waiting.delete(id);
  // Lets a program that waits for nothing else end.
  if (from.waiting.size === 0) from.socket.unref();
  if (type === result) caller?.resolve(value);
  else caller?.reject(new HostFunctionError(value.message, value.name));
}

/**
 * @param {number} type
 * @param {number} id
 * @param {Buffer} payload
 */
function frame(type, id, payload) {
  const header = Buffer.alloc(9);
  header.writeUInt32BE(payload.length + 5, 0);
  header.writeUInt8(type, 4);
  header.writeUInt32BE(id, 5);
  return Buffer.concat([header, payload]);
}

/**
 * Calls a host function.
 *
 * @param {string} name
 * @param {unknown} input
 * @returns {Promise<unknown>}
 */
export async function callHost(name, input) {
  // Read for each call: in a session that keeps variables, the next block has another token.
  const { FENCED_HOST_CALLS: address = "", FENCED_HOST_TOKEN: token = "" } = process.env;
  if (address === "") {
    const message = `${name} can only be called by a block, or a process that has its environment`;
    throw new HostFunctionError(message, "NotConnectedError");
  }
  const text = Buffer.from(JSON.stringify(input === undefined ? {} : input));
  if (text.length > longest) {
    const advice = "write them to a file in the working directory, and pass its name";
    throw new HostFunctionError(`The arguments take more than ${longest} bytes: ${advice}`, "HostCallLimitError");
  }
  if (connection?.token !== token) connection = connect(address, token);
  const { socket, waiting } = connection;
  const id = (last = (last % 0xffff_fffe) + 1);
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    socket.ref();
    socket.write(frame(call, id, Buffer.concat([Buffer.from(`${name}\n`), text])));
  });
}

/** @param {string[]} words */
async function main(words) {
  const [name = "", text = "{}"] = words;
  if (name === "" || words.length > 2) throw new HostFunctionError("functions NAME [JSON | -]", "usage");
  const input = JSON.parse(text === "-" ? readFileSync(0, "utf8") : text);
  process.stdout.write(`${JSON.stringify(await callHost(name, input))}\n`);
}

const [, program = "", ...words] = process.argv;
if (program !== "" && import.meta.url === pathToFileURL(program).href) {
  main(words).catch((/** @type {unknown} */ error) => {
    process.stderr.write(`${words[0] ?? "functions"}: ${String(error)}\n`);
    process.exitCode = 1;
  });
}
