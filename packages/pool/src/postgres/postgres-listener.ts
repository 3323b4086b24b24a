import type { PostgresClient, PostgresPool } from "./postgres-pool.ts";

/** How long to wait before a lost connection is opened again, in milliseconds. */
const againAfterMs = 1_000;

/** Listens on a channel, on a connection of its own, which it replaces when it is lost. */
export class PostgresListener {
  readonly #pool: PostgresPool;
  readonly #channel: string;
  readonly #onMessage: (payload: string) => void;
  #client: PostgresClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;

  /** @param channel - a name that needs no quotes. */
  constructor(pool: PostgresPool, channel: string, onMessage: (payload: string) => void) {
    this.#pool = pool;
    this.#channel = channel;
    this.#onMessage = onMessage;
  }

  async start(): Promise<void> {
    const client = await this.#pool.connect();
    if (this.#client || this.#isEnded) {
      client.release(true);
      return;
    }
    const lost = (): void => {
      if (this.#client !== client) return;
      client.release(true);
      this.#again();
    };
    this.#client = client;
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", ({ payload }) => {
      if (this.#client === client && payload !== undefined) this.#onMessage(payload);
    });
    try {
      await client.query(`LISTEN ${this.#channel}`);
    } catch (error) {
      await this.#letGo(client);
      throw error;
    }
    if (this.#hasEnded()) await this.#letGo(client);
  }

  /** It may end during any wait. */
  #hasEnded(): boolean {
    return this.#isEnded;
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    if (this.#client) await this.#letGo(this.#client);
  }

  async #letGo(client: PostgresClient): Promise<void> {
    if (this.#client !== client) return;
    this.#client = undefined;
    // It may still listen, so nobody else may have it.
    client.release(true);
  }

  #again(): void {
    this.#client = undefined;
    if (this.#isEnded) return;
    // A connection that is lost while it begins to listen is reported twice.
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.start().catch(() => this.#again());
    }, againAfterMs);
    this.#timer.unref();
  }
}
