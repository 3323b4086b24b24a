import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { docker } from "./docker-cli.ts";
import { pythonImage } from "./images.ts";

/** A private Docker daemon, which sees a different `/tmp` than the test does. */
export interface PrivateDaemon extends AsyncDisposable {
  /** As in `DOCKER_HOST`: TCP on the loopback interface. */
  readonly address: string;
  /** Sends a signal to the daemon. */
  signal(signal: NodeJS.Signals): void;
  /** Starts the daemon again after it ended. */
  start(): Promise<void>;
  /** Resolves when the daemon has ended. */
  ended(): Promise<void>;
  /** What `docker` prints about it. */
  docker(...words: readonly string[]): Promise<string>;
}

/** Starts a daemon with the image with Python. Needs root. */
export async function startPrivateDaemon(): Promise<PrivateDaemon> {
  // Not below /tmp, since the daemon has its own. It has its own network, too: without a bridge, it would remove the
  // bridge of the machine's daemon.
  const directory = await mkdtemp("/var/tmp/fenced-test-");
  const socket = join(directory, "docker.sock");
  const relay = await relayTo(socket);
  const address = `tcp://127.0.0.1:${portOf(relay)}`;
  const pidFile = join(directory, "docker.pid");
  const words = [
    "-H",
    `unix://${socket}`,
    "--data-root",
    join(directory, "data"),
    "--exec-root",
    join(directory, "exec"),
    "--pidfile",
    pidFile,
    "--bridge=none",
    "--iptables=false",
    "--ip6tables=false",
  ];
  const script = 'mount --make-rprivate / && mount -t tmpfs tmpfs /tmp && exec dockerd "$@"';
  let ended: Promise<unknown> = Promise.resolve();
  const run = async (...command: readonly string[]) => docker("--host", address, ...command);
  const daemon: PrivateDaemon = {
    address,
    signal(signal) {
      process.kill(pid, signal);
    },
    async start() {
      await rm(pidFile, { force: true });
      await rm(socket, { force: true });
      const child = spawn("unshare", ["--mount", "--net", "sh", "-c", script, "sh", ...words], { stdio: "ignore" });
      ended = once(child, "exit");
      pid = child.pid ?? 0;
      for (let attempt = 0; ; attempt += 1) {
        try {
          await run("version");
          return;
        } catch (error) {
          if (attempt > 100) throw error;
          await sleep(200);
        }
      }
    },
    async ended() {
      await ended;
    },
    docker: run,
    async [Symbol.asyncDispose]() {
      for (const each of ["SIGCONT", "SIGTERM"] as const) ignoreMissing(() => process.kill(pid, each));
      await ended;
      await endLeftovers(directory);
      relay.close();
      await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
  let pid = 0;
  await daemon.start();
  const archive = join(directory, "image.tar");
  await docker("save", "--output", archive, pythonImage);
  await run("load", "--input", archive);
  return daemon;
}

/** A daemon that was killed leaves its containerd and its containers behind; all of them name the directory. */
async function endLeftovers(directory: string): Promise<void> {
  await promisify(execFile)("pkill", ["-KILL", "-f", directory]).catch(() => {});
}

function ignoreMissing(action: () => void): void {
  try {
    action();
  } catch {
    // It is gone already.
  }
}

/** A port of the loopback interface that leads to a socket. */
async function relayTo(socket: string): Promise<Server> {
  const server = createServer((client) => {
    const upstream = connect(socket);
    upstream.on("error", () => client.destroy());
    client.on("error", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
    client.on("close", () => upstream.destroy());
    upstream.pipe(client);
    client.pipe(upstream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}
