import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { bundledCommand } from "@fenced/test-support/bundled-command";

/** Records who says that it holds something, one after another. */
export class Witness implements AsyncDisposable {
  readonly tokens: number[] = [];
  readonly problems: string[] = [];
  readonly #server: Server;
  #inside: string | undefined;

  private constructor() {
    this.#server = createServer((socket) => {
      createInterface(socket).on("line", (said) => {
        this.#hear(said);
        socket.write("heard\n");
      });
    });
  }

  static async start(): Promise<Witness> {
    const witness = new Witness();
    witness.#server.listen(0, "127.0.0.1");
    await once(witness.#server, "listening");
    return witness;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" ? (address?.port ?? 0) : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    await once(this.#server, "close");
  }

  #hear(said: string): void {
    const [event, token = ""] = said.split(" ");
    if (event === "enter") {
      if (this.#inside !== undefined) this.problems.push(`${token} beside ${this.#inside}`);
      this.#inside = token;
      this.tokens.push(Number(token));
    } else {
      if (this.#inside !== token) this.problems.push(`${token} has ended before`);
      this.#inside = undefined;
    }
  }
}

/** Runs `fixtures/racer.ts`. @returns its exit code. */
export async function race(...words: readonly string[]): Promise<unknown> {
  const [program, ...args] = await bundledCommand(join(import.meta.dirname, "../fixtures/racer.ts"), ...words);
  const racer = spawn(program, args, { stdio: ["ignore", "inherit", "inherit"] });
  const [code]: unknown[] = await once(racer, "exit");
  return code;
}
