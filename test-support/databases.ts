import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "./free-port.ts";
import { postgresProgram } from "./postgres-program.ts";

const run = promisify(execFile);

/** A server of a test, on a free port of the loopback interface, with a directory of its own. */
export interface TestDatabase extends AsyncDisposable {
  /** How to connect to it. */
  readonly url: string;
  /** Ends it at once, as a machine that loses its power does. Its data stay. */
  kill(): Promise<void>;
  /** Starts it again, on the same port. */
  start(): Promise<void>;
}

/** Who runs a server: PostgreSQL refuses to be root. */
interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A real redis-server, which writes what it is told to its disk before it answers. */
export async function startRedis(): Promise<TestDatabase> {
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), "fenced-redis-"));
  const settings = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always"];
  const command = ["redis-server", "--port", String(port), "--dir", directory, ...settings] as const;
  const ping = ["redis-cli", "-p", String(port), "-e", "ping"] as const;
  return Server.start({ url: `redis://127.0.0.1:${port}`, directory, command, ping, end: "KILL" });
}

/** A real PostgreSQL. */
export async function startPostgres(): Promise<TestDatabase> {
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), "fenced-postgres-"));
  const account = process.getuid?.() === 0 ? await accountOf("postgres") : undefined;
  if (account) await chown(directory, account.uid, account.gid);
  const options = ["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C"];
  await run(postgresProgram("initdb"), [`--pgdata=${directory}`, ...options], { ...account, cwd: directory });
  const settings = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="];
  const command = [postgresProgram("postgres"), "-D", directory, "-p", String(port), ...settings] as const;
  const ping = [postgresProgram("pg_isready"), "-q", "-h", "127.0.0.1", "-p", String(port)] as const;
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  // At once, with all its processes.
  return Server.start({ url, directory, command, ping, end: "QUIT", account });
}

interface ServerParts {
  readonly url: string;
  readonly directory: string;
  readonly command: readonly [string, ...string[]];
  /** Succeeds when it answers. */
  readonly ping: readonly [string, ...string[]];
  /** The signal that ends it. */
  readonly end: "KILL" | "QUIT";
  readonly account?: Account | undefined;
}

/** Ends the server and removes its directory when this program ends, even by SIGKILL. */
const untilInputEnds =
  'end=$1; shift; "$@" & server=$!; read -r word; kill "-$end" "$server"; wait; [ "$word" = stay ] || rm -rf "$0"';

class Server implements TestDatabase {
  readonly url: string;
  readonly #parts: ServerParts;
  #process: ChildProcess | undefined;

  private constructor(parts: ServerParts) {
    this.url = parts.url;
    this.#parts = parts;
  }

  static async start(parts: ServerParts): Promise<Server> {
    const server = new Server(parts);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const { command, account, directory, ping, end } = this.#parts;
    const child = spawn("sh", ["-c", untilInputEnds, directory, end, ...command], {
      ...account,
      cwd: directory,
      stdio: ["pipe", "ignore", "ignore"],
    });
    this.#process = child;
    while (!(await succeeds(ping))) await sleep(20);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child?.exitCode !== null) return;
    const ended = once(child, "exit");
    child.stdin?.end("stay\n");
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.#parts.directory, { recursive: true, force: true, maxRetries: 20 });
  }
}

async function accountOf(name: string): Promise<Account> {
  const id = async (option: string): Promise<number> => Number((await run("id", [option, name])).stdout);
  return { uid: await id("-u"), gid: await id("-g") };
}

async function succeeds([program, ...args]: readonly [string, ...string[]]): Promise<boolean> {
  try {
    await run(program, args, { timeout: 5_000 });
    return true;
  } catch {
    return false;
  }
}
