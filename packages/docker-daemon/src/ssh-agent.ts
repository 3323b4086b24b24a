import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { Agent } from "node:http";
import { Socket } from "node:net";
import { Duplex } from "node:stream";

/** Time limit for the remote machine to answer in seconds. */
const connectSeconds = 10;

/**
 * Connects to a daemon as the `docker` program does: through OpenSSH's `ssh`, which runs `docker system dial-stdio` on
 * the remote machine. So the user's keys, agent, known hosts and `~/.ssh/config` apply. It never prompts: an unknown
 * host key or a request for a password is an error.
 */
export class SshAgent extends Agent {
  readonly #words: readonly string[];

  /** @param words - the arguments of `ssh`: `sshWords(address)`. */
  constructor(words: readonly string[]) {
    super({ keepAlive: true });
    this.#words = words;
  }

  override createConnection(): Duplex {
    return new SshConnection(this.#words);
  }
}

/**
 * The arguments for `ssh` to connect to a daemon.
 *
 * @param address - `ssh://user@host:port/path/of/the/socket`; all but the host can be left out.
 */
export function sshWords({ hostname, port, username, pathname }: URL): string[] {
  const words = ["-T", "-o", "BatchMode=yes", "-o", `ConnectTimeout=${connectSeconds}`];
  if (username !== "") words.push("-l", decodeURIComponent(username));
  if (port !== "") words.push("-p", port);
  words.push("--", hostname.replaceAll(/^\[|\]$/g, ""), "docker");
  const socket = decodeURIComponent(pathname);
  // The remote machine's shell parses it.
  if (socket !== "" && socket !== "/") words.push("--host", `'unix://${socket.replaceAll("'", String.raw`'\''`)}'`);
  return [...words, "system", "dial-stdio"];
}

/**
 * One connection to the daemon: the standard streams of an `ssh` process, with the methods that Node's HTTP client
 * expects of a socket.
 */
class SshConnection extends Duplex {
  readonly #child: ChildProcessWithoutNullStreams;
  #errors = "";

  constructor(words: readonly string[]) {
    super();
    this.#child = spawn("ssh", words, { stdio: "pipe" });
    const { stdin, stdout, stderr } = this.#child;
    // A broken connection is reported once, by the end of `ssh`.
    stdin.on("error", () => {});
    stdout.on("data", (chunk: Buffer) => {
      if (!this.push(chunk)) stdout.pause();
    });
    stderr.on("data", (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-2000);
    });
    this.#child.on("error", (cause) =>
      this.destroy(new Error(`ssh could not be started: ${cause.message}`, { cause })),
    );
    this.#child.on("close", (code) => {
      if (code === 0) this.push(null);
      else this.destroy(new Error(`ssh: ${this.#errors.trim() || `it ended with exit code ${code}`}`));
    });
  }

  override _read(): void {
    this.#child.stdout.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#child.stdin.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#child.stdin.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#child.kill();
    done(error);
  }

  setKeepAlive(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }

  ref(): this {
    return this.#hold("ref");
  }

  unref(): this {
    return this.#hold("unref");
  }

  /** Sets whether this connection keeps Node running. */
  #hold(how: "ref" | "unref"): this {
    this.#child[how]();
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      if (stream instanceof Socket) stream[how]();
    }
    return this;
  }
}
