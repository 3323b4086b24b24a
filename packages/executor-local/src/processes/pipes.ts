import { execFile } from "node:child_process";
// Always with `bigint`, as the lint rule requires.
// oxlint-disable-next-line no-restricted-imports
import { closeSync, constants, fstatSync, openSync, readSync, unlinkSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isMainThread } from "node:worker_threads";
import { errorCode, OutputStreams, type Sink, type StreamName } from "@fenced/executor-kit";

/** Maximum bytes per read: the default capacity of a pipe on Linux. */
const readSize = 65_536;
/** No pipe can hold more (Linux: `/proc/sys/fs/pipe-max-size`), so a program cannot leave more than this in one. */
const pipeCapacity = 1_048_576;

interface Source {
  readonly type: StreamName;
  readonly socket: net.Socket;
  /** The pipe's descriptor; absent for a socket. */
  readonly fd?: number;
}

/**
 * Reads a program's output streams and writes their data to a sink in order of arrival, no faster than the sink takes it.
 * Reads each pipe into one reused buffer, so even a gigabyte of output creates no garbage.
 *
 * A process that the program leaves running may keep writing, for example a server's log. It must neither block nor
 * fail, so such a pipe is read and its data dropped until it ends.
 */
export class OutputReader {
  readonly #sink: Sink;
  readonly #sources: Source[] = [];
  readonly #streams = new OutputStreams();
  readonly #leftOpen: Set<net.Socket>;
  #finished = false;

  /** @param leftOpen - collects the pipes that outlive their program, to be destroyed when the session ends. */
  constructor(sink: Sink, leftOpen: Set<net.Socket>) {
    this.#sink = sink;
    this.#leftOpen = leftOpen;
  }

  /** Reads the pipe at `fd`, and closes it at the end. */
  addPipe(type: StreamName, fd: number): void {
    const buffer = Buffer.allocUnsafeSlow(readSize);
    const read = (count: number): boolean => {
      if (!this.#finished) this.#streams.hold(this.#sink.write({ type, data: buffer.subarray(0, count) }));
      return true;
    };
    const options: net.SocketConstructorOpts & { readonly onread: net.OnReadOpts } = {
      fd,
      readable: true,
      writable: false,
      onread: { buffer, callback: read },
    };
    const socket = new net.Socket(options);
    this.#add({ type, fd, socket });
    this.#streams.add(socket);
    socket.resume();
  }

  /** Reads one of a child's own streams. */
  addSocket(type: StreamName, socket: net.Socket): void {
    this.#add({ type, socket });
    this.#streams.follow(socket, (data) => this.#sink.write({ type, data }));
  }

  /**
   * Reads what the program left in its pipes when it ended. Does not wait for their end, since a process that it left
   * running may hold them open.
   */
  async finish(): Promise<void> {
    const sockets = this.#sources.filter((source) => source.fd === undefined);
    await Promise.all(sockets.map(async ({ socket }) => settled(socket)));
    if (this.#finished) return;
    this.#finished = true;
    for (const { socket, type, fd } of this.#sources) {
      const open = !socket.destroyed && !socket.readableEnded;
      if (fd !== undefined && open && this.#drain(type, fd)) this.#leaveOpen(socket);
      else socket.destroy();
    }
  }

  #add(source: Source): void {
    this.#sources.push(source);
    // A broken pipe provides nothing more, and the program's exit code is reported separately.
    source.socket.on("error", () => {});
  }

  /** Reads what is in a pipe now. Returns whether anything can still write to it. */
  #drain(type: StreamName, fd: number): boolean {
    const chunk = Buffer.allocUnsafeSlow(readSize);
    for (let left = pipeCapacity; left > 0;) {
      const count = readAvailable(fd, chunk);
      if (count === undefined) return true;
      if (count === 0) return false;
      left -= count;
      // Not waited for, since it is no more than the pipe could hold.
      void this.#sink.write({ type, data: chunk.subarray(0, count) });
    }
    return true;
  }

  #leaveOpen(socket: net.Socket): void {
    this.#leftOpen.add(socket);
    socket.once("close", () => {
      this.#leftOpen.delete(socket);
    });
    socket.unref();
    socket.resume();
  }
}

/** Waits until the socket ends or has been quiet for a moment, since a socket cannot be asked whether it is empty. */
async function settled(socket: net.Socket): Promise<void> {
  for (let seen = -1; seen !== socket.bytesRead && !socket.readableEnded && !socket.destroyed;) {
    // While a slow reader makes it wait, nothing arrives.
    seen = socket.isPaused() ? -1 : socket.bytesRead;
    await sleep(50);
  }
}

/** Number of bytes read from a non-blocking descriptor; `undefined` if there are none now, 0 at the end. */
function readAvailable(fd: number, into: Buffer): number | undefined {
  try {
    return readSync(fd, into);
  } catch (error) {
    if (errorCode(error) === "EAGAIN") return undefined;
    throw error;
  }
}

/** Both ends of a pipe, as descriptors; the caller closes them. */
export interface Pipe {
  readonly readEnd: number;
  readonly writeEnd: number;
}

/** A pipe for a program's input. */
export interface InputPipe {
  /** For the program; the caller closes it. */
  readonly readEnd: number;
  /** Destroyed by the caller. */
  readonly writer: net.Socket;
}

const batchSize = 32;

/**
 * False on Windows, which has no such pipes; in Deno, whose sockets cannot take over a descriptor; and in worker threads: when
 * one ends, Node closes each descriptor that was opened there, even if a socket has taken it over and closed it since, and its
 * number now belongs to another file of the program.
 */
const canUsePipes = process.platform !== "win32" && isMainThread && process.versions["deno"] === undefined;

/**
 * Provides real pipes for the output of blocks. Node connects children through sockets, which programs cannot reopen,
 * so `echo oops > /dev/stderr` would fail. Node cannot create a pipe, but it can open a named one, and `mkfifo` creates
 * many of those at once.
 */
export class PipeSupply {
  readonly #directory: string;
  readonly #names: string[] = [];
  #made = 0;
  #making: Promise<boolean> | undefined;

  /** @param directory - holds the named pipes until they are taken. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Creates a batch in advance; returns whether the system can. */
  async fill(): Promise<boolean> {
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  /** Returns a new pipe, or `undefined` if the system has none. */
  async take(): Promise<Pipe | undefined> {
    return this.#take(openPipe);
  }

  /** Returns a new pipe to write to, or `undefined` if the system has none. */
  async takeInput(): Promise<InputPipe | undefined> {
    return this.#take(openInputPipe);
  }

  async #take<Opened extends object>(open: (name: string) => Opened | undefined): Promise<Opened | undefined> {
    // A block may have removed all the named pipes.
    for (let broken = 0; broken <= batchSize;) {
      const name = this.#names.pop();
      if (this.#names.length < batchSize / 4) void this.fill();
      if (name === undefined) {
        // Other callers that wait for this batch may empty it first.
        if (!(await this.fill())) return undefined;
        continue;
      }
      const pipe = open(name);
      if (pipe) return pipe;
      broken += 1;
    }
    return undefined;
  }

  /** Waits until no batch is being created. */
  async settle(): Promise<void> {
    await this.#making;
  }

  async #make(): Promise<boolean> {
    if (!canUsePipes) return false;
    const names = Array.from({ length: batchSize }, (_, index) =>
      path.join(this.#directory, `pipe-${this.#made + index}`),
    );
    this.#made += batchSize;
    try {
      await promisify(execFile)("mkfifo", ["-m", "600", ...names]);
      this.#names.push(...names);
      return true;
    } catch {
      // Without mkfifo, or while the session's directory is being removed, blocks write to sockets instead.
      return false;
    }
  }
}

/** Single pipes, one of which can be made in advance. */
export class OutputPipes {
  readonly #name: string;
  readonly #makeNamed: () => Promise<boolean>;
  #made: Pipe | undefined;

  /**
   * @param name - absolute path in a directory of this program only.
   * @param makeNamed - makes a named pipe there; returns whether it did.
   */
  constructor(name: string, makeNamed: () => Promise<boolean>) {
    this.#name = name;
    this.#makeNamed = makeNamed;
  }

  /** Makes the pipe to take next, if the system can. */
  async make(): Promise<void> {
    if (canUsePipes && (await this.#makeNamed())) this.#made = openPipe(this.#name);
  }

  /** Returns a new pipe, or `undefined` if the system has none. */
  async take(): Promise<Pipe | undefined> {
    if (!this.#made) await this.make();
    const made = this.#made;
    this.#made = undefined;
    return made;
  }

  /** Closes the pipe that nobody has taken. */
  close(): void {
    if (this.#made) closePipe(this.#made);
    this.#made = undefined;
  }
}

/** Closes both ends. */
export function closePipe({ readEnd, writeEnd }: Pipe): void {
  closeSync(readEnd);
  closeSync(writeEnd);
}

/** Returns `undefined` if a block removed or replaced the pipe, or if no descriptors are left. */
function openPipe(name: string): Pipe | undefined {
  return openEnds(name, (readEnd) => readEnd);
}

function openInputPipe(name: string): InputPipe | undefined {
  // Programs expect reads to wait for input. With a writer, opening the pipe for that does not wait.
  const ends = openEnds(name, (_, again) => openSync(again, constants.O_RDONLY));
  return (
    ends && { readEnd: ends.readEnd, writer: new net.Socket({ fd: ends.writeEnd, readable: false, writable: true }) }
  );
}

/** @param reading - returns the end to read from, given a non-blocking end and a name for opening it again. */
function openEnds(name: string, reading: (readEnd: number, again: string) => number): Pipe | undefined {
  const opened: number[] = [];
  const keep = (fd: number): number => {
    opened.push(fd);
    return fd;
  };
  try {
    const first = keep(openSync(name, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW));
    if (!fstatSync(first, { bigint: true }).isFIFO()) throw new Error("not a pipe");
    // Code may have put another pipe without a reader under this name; opening it would block this program.
    const again = process.platform === "linux" ? `/proc/self/fd/${first}` : name;
    const writeEnd = keep(openSync(again, constants.O_WRONLY));
    const readEnd = reading(first, again);
    if (readEnd !== first) {
      closeSync(first);
      opened.splice(0, 1, readEnd);
    }
    unlinkSync(name);
    return { readEnd, writeEnd };
  } catch {
    for (const fd of opened) closeSync(fd);
    return undefined;
  }
}
