import { createHash, randomUUID } from "node:crypto";
import { InvalidInputError } from "@fenced/core";
import { checkOptions, type OptionSchemas, optionsSchema } from "@fenced/core/options";
import * as z from "zod";
import type {
  AcquiredSession,
  OccupiedSession,
  RenewedSession,
  SessionDirectory,
  SessionHold,
  SessionMessage,
  SessionNote,
  SessionRequest,
} from "../directory/session-directory.ts";
import {
  checkAnswer,
  checkKey,
  keptMs,
  readMessage,
  readNote,
  storedNote,
  storedToken,
} from "../directory/stored-session.ts";
import { PostgresListener } from "./postgres-listener.ts";
import { isPostgresPool, type PostgresPool, type PostgresResult } from "./postgres-pool.ts";
import { type Statements, statementsFor } from "./statements.ts";

/** How often each process deletes records that nobody needs, in milliseconds. */
const sweepEveryMs = 3_600_000;

const request = z.enum(["hand-over", "end"]);
const acquired = z.tuple([
  z.object({
    taken: z.boolean(),
    owner: z.string(),
    token: storedToken,
    note: z.string().nullable(),
    abandoned: z.boolean(),
    lease: z.number(),
  }),
]);
const renewed = z.array(z.object({ key: z.string(), token: storedToken, request: request.nullable() }));
const freed = z.tuple([z.object({ freed: z.union([z.literal(0), z.literal(1)]) })]);

/** Options of `postgresDirectory`. */
export interface PostgresDirectoryOptions {
  /** The table, possibly with its schema: `acme.sessions`. Different services need different ones. Default: `fenced_sessions`. */
  readonly table?: string | undefined;
}

const directoryOptions: z.ZodType<PostgresDirectoryOptions> = optionsSchema({
  table: z
    .string()
    .regex(/^(?:[a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$/, "must be a name of small letters, digits and _")
    .exactOptional(),
} satisfies OptionSchemas<PostgresDirectoryOptions>);

/** A directory in PostgreSQL. */
export interface PostgresDirectory extends SessionDirectory {
  /** The statement that creates the table if it is missing, for migrations. */
  readonly createTable: string;
  /** Carries it out. */
  setup(): Promise<void>;
}

/**
 * A directory of sessions in PostgreSQL 12 or later, for any number of processes. Needs a `Pool` of the package `pg`,
 * which you create and end; one of its connections listens for messages as long as sessions are open.
 *
 * @throws InvalidInputError if an argument is wrong.
 *
 * @example
 * const directory = postgresDirectory(new Pool({ connectionString: process.env.DATABASE_URL }));
 * await directory.setup(); // or in a migration: directory.createTable
 * const sessions = new ExecutorSessions({ create, directory, checkpoints });
 */
export function postgresDirectory(pool: object, options: PostgresDirectoryOptions = {}): PostgresDirectory {
  if (!isPostgresPool(pool)) {
    throw new InvalidInputError("postgresDirectory needs a Pool of the package pg", {
      remedy: "Pass `new Pool({ connectionString })`.",
    });
  }
  const { table = "fenced_sessions" } = checkOptions(directoryOptions, options, "postgresDirectory");
  return new TableDirectory(pool, table);
}

class TableDirectory implements PostgresDirectory {
  readonly createTable: string;
  readonly #pool: PostgresPool;
  readonly #table: string;
  readonly #statements: Statements;
  #sweptAt = performance.now();

  constructor(pool: PostgresPool, table: string) {
    this.#pool = pool;
    this.#table = table;
    this.#statements = statementsFor(table);
    this.createTable = this.#statements.setup;
  }

  async setup(): Promise<void> {
    // Several processes may do so at once, which PostgreSQL itself does not expect.
    await this.#pool.query(`SELECT pg_advisory_xact_lock(hashtext('${this.#table}')); ${this.createTable}`);
  }

  async acquire(
    key: string,
    options: { readonly owner: string; readonly leaseMs: number; readonly request: SessionRequest },
  ): Promise<AcquiredSession | OccupiedSession> {
    const { owner, leaseMs } = options;
    const values = [checkKey(key), owner, leaseMs, options.request, randomUUID()];
    const [found] = checkAnswer(acquired, (await this.#query(this.#statements.acquire, values)).rows);
    if (!found.taken) return { isHeld: false, owner: found.owner, leaseMs: found.lease };
    return { isHeld: true, token: found.token, leaseMs, note: readNote(found.note), isAbandoned: found.abandoned };
  }

  async renew(
    holds: readonly SessionHold[],
    { owner, leaseMs }: { readonly owner: string; readonly leaseMs: number },
  ): Promise<readonly RenewedSession[]> {
    const values = [holds.map(({ key }) => key), holds.map((hold) => String(hold.token)), owner, leaseMs];
    const { rows } = await this.#query(this.#statements.renew, values);
    return checkAnswer(renewed, rows).map(({ request: asked, ...hold }) => {
      return asked === null ? hold : { ...hold, request: asked };
    });
  }

  async update({ key, owner, token }: SessionHold, note: SessionNote): Promise<boolean> {
    const { text, isKept } = storedNote(note);
    const { rowCount } = await this.#query(this.#statements.update, [key, owner, token, text, isKept]);
    return rowCount === 1;
  }

  async release({ key, owner, token }: SessionHold, note: SessionNote | undefined): Promise<boolean> {
    const message = JSON.stringify({ key, event: "released" } satisfies SessionMessage);
    const stored = note && storedNote(note);
    const values = [key, owner, token, stored?.text, stored?.isKept ?? false, message];
    const { rows } = await this.#query(this.#statements.release, values);
    this.#sweep();
    return checkAnswer(freed, rows)[0].freed === 1;
  }

  async listen(owner: string, listener: (message: SessionMessage) => void): Promise<() => Promise<void>> {
    const channel = `fenced_${createHash("md5").update(owner).digest("hex")}`;
    const listening = new PostgresListener(this.#pool, channel, (sent) => {
      const message = readMessage(sent);
      if (message) listener(message);
    });
    try {
      await listening.start();
    } catch (error) {
      // The caller tries again, with another one.
      await listening.end();
      throw error;
    }
    return () => listening.end();
  }

  /** Deletes what only tells users of sessions that ended long ago what they have lost. */
  #sweep(): void {
    if (performance.now() - this.#sweptAt < sweepEveryMs) return;
    this.#sweptAt = performance.now();
    // Another process, or the next time, will do.
    this.#query(this.#statements.sweep, [keptMs]).catch(() => {});
  }

  async #query(statement: string, values: unknown[]): Promise<PostgresResult> {
    try {
      return await this.#pool.query(statement, values);
    } catch (error) {
      if (!(error instanceof Error && Reflect.get(error, "code") === "42P01")) throw error;
      throw new InvalidInputError(`PostgreSQL has no table ${this.#table}`, {
        remedy: "Call `await directory.setup()` once, or carry out `directory.createTable` in a migration.",
        cause: error,
      });
    }
  }
}
