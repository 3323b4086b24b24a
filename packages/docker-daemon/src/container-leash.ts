import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { nodeProgram } from "@fenced/core/runtime";
import type { DaemonTransport } from "./find-daemon.ts";

const waitProgram: string = readFileSync(new URL("./container-leash.sh", import.meta.url), "utf8");
const endProgram: string = readFileSync(new URL("./container-leash.mjs", import.meta.url), "utf8");

/** Which containers a leash ends, and how. */
export interface LeashOrder {
  /** How to reach the daemon: `Daemon.transport`. */
  readonly transport: DaemonTransport;
  /** The containers' label, `name=value`; no other container may have it. */
  readonly label: string;
  /** What to do with containers that were started; others are always removed. */
  readonly end: "remove" | "kill" | "keep";
}

/**
 * Ends containers when this program dies, at any moment and even by `kill -9`. A tiny shell in its own process session
 * waits for its standard input to end, and then starts Node once to talk to the daemon, wherever that is. So it depends
 * neither on the code in the container nor on whether the container was started at all. It takes a millisecond to start
 * and a megabyte of memory. Not available on Windows, nor
 * where there is no Node to start (`nodeProgram` of `@fenced/core/runtime`).
 *
 * @example
 * const leash = new ContainerLeash({ transport: daemon.transport, label: `my.owner=${id}`, end: "remove" });
 * const container = await leash.creating(() => daemon.docker.createContainer(options));
 * // ... once it is removed:
 * await leash.release();
 */
export class ContainerLeash {
  readonly #shell: ChildProcess | undefined;

  constructor(order: LeashOrder) {
    if (process.platform === "win32") return;
    const node = nodeProgram();
    // Without Node there is no leash; see below.
    if (node === undefined) return;
    const command = [node.file, "--input-type=module", "-e", endProgram, JSON.stringify(order)];
    this.#shell = spawn("/bin/sh", ["-c", waitProgram, "fenced-container-leash", ...command], {
      cwd: "/",
      detached: true,
      env: { ...leashEnvironment(), ...node.env },
      stdio: ["pipe", "ignore", "ignore"],
    });
    // Without a shell there is no leash, but containers still end with the connection that keeps them alive.
    this.#shell.on("error", () => {});
    this.#shell.stdin?.on("error", () => {});
    this.#shell.unref();
    if (this.#shell.stdin instanceof Socket) this.#shell.stdin.unref();
  }

  /**
   * Tells the leash that a container is being created: if this program dies meanwhile, the leash waits for the
   * container to appear.
   */
  async creating<T>(create: () => Promise<T>): Promise<T> {
    this.#shell?.stdin?.write("creating\n");
    try {
      return await create();
    } finally {
      this.#shell?.stdin?.write("\n");
    }
  }

  /** Ends the leash without ending any container. Idempotent. */
  async release(): Promise<void> {
    const shell = this.#shell;
    if (shell?.pid === undefined || shell.exitCode !== null || shell.signalCode !== null) return;
    shell.ref();
    const ended = once(shell, "exit");
    shell.kill("SIGKILL");
    await ended;
    shell.stdin?.destroy();
  }
}

/** What `ssh` needs; nothing else of this program's environment. */
function leashEnvironment(): Record<string, string> {
  const env: Record<string, string> = { PATH: "/usr/local/bin:/usr/bin:/bin" };
  for (const name of ["PATH", "HOME", "SSH_AUTH_SOCK", "LD_LIBRARY_PATH"]) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}
