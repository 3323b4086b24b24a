import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import path from "node:path";
import { PassThrough, type Readable, type Writable } from "node:stream";
import {
  attachCommand,
  connectSupervisor,
  type LinkOptions,
  sessionServerCommand,
  SessionLink,
  type Supervisor,
  type SupervisorAnswer,
  type SupervisorStreams,
} from "@fenced/executor-kit/supervisor";
import { onTestFinished } from "vitest";
import { temporaryDirectory } from "./temporary-directory.ts";

/** A connection of a program, and what it carries. */
export interface Streams extends SupervisorStreams {
  readonly stdin: Writable;
  readonly stdout: Readable;
}

/** Changes a chunk on its way; the connection may be cut after it. */
export type Change = (chunk: Buffer, cut: () => void) => Buffer;

/** A program that uses a session. */
export interface Program {
  readonly link: SessionLink;
  readonly supervisor: Supervisor;
  readonly answer: SupervisorAnswer;
}

/** A session's server with its supervisor, as processes of this machine. */
export class KeptPlace {
  readonly key: Buffer = randomBytes(32);
  readonly name: string = `fenced-test-${randomUUID()}`;
  readonly workspace: string;
  readonly keepAliveMs: number;
  readonly server: ChildProcess;
  readonly first: Streams;
  readonly #children: ChildProcess[] = [];

  constructor(settings: Pick<KeptPlace, "workspace" | "keepAliveMs"> & { readonly directory: string }) {
    ({ workspace: this.workspace, keepAliveMs: this.keepAliveMs } = settings);
    const config = { directory: settings.directory, workspace: this.workspace, programs: ["python3"] };
    const child = this.#spawn(sessionServerCommand(this.name, config));
    this.server = child.process;
    this.first = child.streams;
  }

  /** @param keepAliveMs - longer than any program of a test is away, also on a busy machine. */
  static async open(keepAliveMs = 60_000): Promise<KeptPlace> {
    const directory = path.join(await temporaryDirectory(), "session");
    const place = new KeptPlace({ directory, workspace: await temporaryDirectory(), keepAliveMs });
    onTestFinished(() => place.end());
    return place;
  }

  /** Opens a connection, as any program on this machine can. */
  attach(): Streams {
    return this.#spawn(attachCommand(this.name)).streams;
  }

  /** Connects a program. */
  async connect(options: Partial<LinkOptions> = {}): Promise<Program> {
    const link = await this.link(options);
    const answer = await connectSupervisor(link.streams, { isCut: () => link.isCut });
    if (!answer.supervisor) throw new Error("There is no Python.");
    return { link, supervisor: answer.supervisor, answer };
  }

  link(options: Partial<LinkOptions> = {}): Promise<SessionLink> {
    const { key, keepAliveMs } = this;
    const signal = new AbortController().signal;
    const connect = (): Promise<Streams> => Promise.resolve(this.attach());
    return SessionLink.open({ key, keepAliveMs, takeOver: false, signal, connect, ...options });
  }

  /** Resolves when the session is over. */
  async over(): Promise<void> {
    const { server } = this;
    if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
  }

  async end(): Promise<void> {
    for (const child of this.#children) {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    }
  }

  #spawn([program, ...words]: readonly [string, ...string[]]): { process: ChildProcess; streams: Streams } {
    const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"] });
    this.#children.push(child);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {});
    child.stderr.resume();
    return { process: child, streams: child };
  }
}

/** Passes a connection on through two functions. */
export function relayed(
  { stdin, stdout }: Streams,
  { up = same, down = same }: { up?: Change; down?: Change },
): Streams {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const all = [stdin, stdout, input, output];
  /** What was sent before the cut arrives. */
  const cut = (last?: Writable): void => {
    last?.end();
    for (const stream of all) if (stream !== last) stream.destroy();
  };
  const pass = (from: Readable, to: Writable, change: Change): void => {
    from.on("data", (chunk: Buffer) => {
      const cutting: Writable[] = [];
      const changed = change(chunk, () => cutting.push(to));
      const room = to.destroyed || to.write(changed);
      for (const last of cutting) cut(last);
      if (cutting.length === 0 && !room) {
        from.pause();
        to.once("drain", () => from.resume());
      }
    });
    for (const end of ["end", "close", "error"]) from.on(end, () => cut(to));
    to.on("close", () => cut());
  };
  pass(input, stdin, up);
  pass(stdout, output, down);
  return { stdin: input, stdout: output };
}

function same(chunk: Buffer): Buffer {
  return chunk;
}
