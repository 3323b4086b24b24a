import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerSettings } from "../../src/index.ts";

const program = join(import.meta.dirname, "../fixtures/plain-server.py");
const token = "0123456789abcdef";

/** A Jupyter server that this package did not start, with its own output limits and all files in one directory. */
export class PlainServer implements AsyncDisposable {
  readonly settings: ServerSettings;
  /** The server's root directory. */
  readonly directory: string;
  /** Where it and its kernels keep their temporary files. */
  readonly home: string;
  readonly #process: ChildProcessByStdio<null, Readable, null>;

  private constructor(process: ChildProcessByStdio<null, Readable, null>, home: string, settings: ServerSettings) {
    this.#process = process;
    this.home = home;
    this.directory = join(home, "root");
    this.settings = settings;
  }

  /**
   * @param services - `kernels`: kernels only, without a contents API, like a kernel gateway; `careful`: all, but only
   *   empty directories are deleted; `open`: without a token; `password`: with a password instead of a token.
   */
  static async start(
    python: string,
    services: "all" | "careful" | "kernels" | "open" | "password" = "all",
  ): Promise<PlainServer> {
    const home = await mkdtemp(join(tmpdir(), "fenced-test-"));
    const root = join(home, "root");
    const command = `mkdir ${root} && exec "$0" "$@"`;
    const server = spawn("/bin/sh", ["-c", command, python, program, root, services], {
      // A kernel that is killed leaves its temporary files.
      env: { ...process.env, JUPYTER_TOKEN: token, JUPYTER_RUNTIME_DIR: home, JUPYTER_CONFIG_DIR: home, TMPDIR: home },
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    const [baseUrl] = (await once(createInterface(server.stdout), "line")) as [string];
    const credential = { open: {}, password: { password: token } };
    const given = services === "open" || services === "password" ? credential[services] : { token };
    const started = new PlainServer(server, home, { baseUrl, ...given });
    await started.#untilReady();
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#process, "exit");
    // Its kernels have groups of their own; they end when they see that their parent is gone.
    if (this.#process.pid !== undefined) process.kill(-this.#process.pid, "SIGKILL");
    await gone;
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }

  async #untilReady(): Promise<void> {
    const url = `${this.settings.baseUrl}api/kernelspecs`;
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const answer = await fetch(url, { headers: { Authorization: `token ${token}` } }).catch(() => undefined);
      await answer?.body?.cancel();
      if (answer && answer.status < 500) return;
      await sleep(100);
    }
    throw new Error("the server does not answer");
  }
}
