import type { Duplex } from "node:stream";
import { Refusal } from "./destination/refusal.ts";
import { isSame } from "./http/http-door.ts";
import { endSoon } from "./tunnel.ts";
import type { Visitor } from "./visitor.ts";

const version = 5;
const succeeded = 0;
const notAllowed = 2;
const unreachable = 4;
const commandNotSupported = 7;
const addressTypeNotSupported = 8;
const noMethod = 255;
const withoutPassword = 0;
const byPassword = 2;

/** Connects the rest of a stream to a place. */
type Tunnel = (visitor: Visitor, host: string, port: number, established: () => void) => Promise<void>;

/** Speaks SOCKS5 (RFC 1928, RFC 1929): CONNECT only, with names, IPv4 and IPv6 addresses. */
export async function enterSocks(visitor: Visitor, tunnel: Tunnel): Promise<void> {
  const { stream } = visitor;
  try {
    const reader = new ByteReader(stream);
    await greet(reader, visitor);
    const [, command, , type] = await reader.take(4);
    if (command !== 1) throw new SocksFailure(answer(commandNotSupported));
    const host = await readHost(reader, type ?? 0);
    const port = (await reader.take(2)).readUInt16BE(0);
    reader.end();
    visitor.arrived();
    await tunnel(visitor, host, port, () => void stream.write(answer(succeeded)));
  } catch (error) {
    if (!stream.writableEnded) stream.write(replyTo(error));
    endSoon(stream);
  }
}

/** Negotiates authentication. A client with a wrong password gets the response for that, and nothing more. */
async function greet(reader: ByteReader, { stream, secret }: Visitor): Promise<void> {
  const [, count = 0] = await reader.take(2);
  const methods = await reader.take(count);
  const method = secret === undefined ? withoutPassword : byPassword;
  if (!methods.includes(method)) throw new SocksFailure(Buffer.from([version, noMethod]));
  stream.write(Buffer.from([version, method]));
  if (secret === undefined) return;
  await reader.take(1);
  await reader.text();
  if (!isSame(await reader.text(), secret)) throw new SocksFailure(Buffer.from([1, 1]));
  stream.write(Buffer.from([1, 0]));
}

async function readHost(reader: ByteReader, type: number): Promise<string> {
  if (type === 1) return [...(await reader.take(4))].join(".");
  if (type === 3) return reader.text();
  if (type !== 4) throw new SocksFailure(answer(addressTypeNotSupported));
  const address = await reader.take(16);
  return Array.from({ length: 8 }, (_, index) => address.readUInt16BE(index * 2).toString(16)).join(":");
}

/** Reads a client's data in pieces of known length. Anything not taken stays in the stream. */
class ByteReader {
  readonly #stream: Duplex;
  #bytes = Buffer.alloc(0);

  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  async take(count: number): Promise<Buffer> {
    while (this.#bytes.length < count) {
      const more: unknown = this.#stream.read();
      if (more instanceof Buffer) this.#bytes = Buffer.concat([this.#bytes, more]);
      else if (this.#stream.readableEnded || this.#stream.destroyed) throw new Error("the client has gone");
      else await moved(this.#stream);
    }
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }

  async text(): Promise<string> {
    const [length = 0] = await this.take(1);
    return (await this.take(length)).toString("latin1");
  }

  /** Puts surplus bytes back. */
  end(): void {
    if (this.#bytes.length > 0) this.#stream.unshift(this.#bytes);
  }
}

/** Resolves when there is more to read, or when there never will be. */
function moved(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const events = ["readable", "end", "close"];
    const done = (): void => {
      for (const event of events) stream.off(event, done);
      resolve();
    };
    for (const event of events) stream.on(event, done);
  });
}

/** A failure that the client gets as a number. */
class SocksFailure extends Error {
  readonly reply: Buffer;

  constructor(reply: Buffer) {
    super("the proxy cannot do that");
    this.reply = reply;
  }
}

function replyTo(error: unknown): Buffer {
  if (error instanceof SocksFailure) return error.reply;
  return answer(error instanceof Refusal && error.denied ? notAllowed : unreachable);
}

/** Contains a placeholder address: clients do not need the one that the proxy dials from. */
function answer(code: number): Buffer {
  return Buffer.from([version, code, 0, 1, 0, 0, 0, 0, 0, 0]);
}
