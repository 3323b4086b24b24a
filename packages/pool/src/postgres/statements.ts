/** The statements of a directory in a table. Each of them is one step, by the engine's clock when it began. */
export interface Statements {
  readonly setup: string;
  /** $1 key, $2 owner, $3 lease, $4 request, $5 a name for this attempt. */
  readonly acquire: string;
  /** $1 keys, $2 tokens, $3 owner, $4 lease. */
  readonly renew: string;
  /** $1 key, $2 owner, $3 token, $4 note, $5 whether the record has to stay. */
  readonly update: string;
  /** The same, $6 message. */
  readonly release: string;
  /** $1 milliseconds. */
  readonly sweep: string;
}

/** @param table - a name that needs no quotes. */
export function statementsFor(table: string): Statements {
  const now = "statement_timestamp()";
  const ends = (lease: string): string => `${now} + make_interval(secs => ${lease}::float8 / 1000)`;
  const microseconds = `(extract(epoch from ${now}) * 1000000)::bigint`;
  const held = `(s.owner IS NOT NULL AND s.ends_at > ${now})`;
  const unlessHeld = (column: string, value: string): string =>
    `${column} = CASE WHEN ${held} THEN s.${column} ELSE ${value} END`;
  const channel = (owner: string): string => `'fenced_' || md5(${owner})`;
  const own = "key = $1 AND owner = $2 AND token = $3::bigint";
  return {
    setup: `CREATE TABLE IF NOT EXISTS ${table} (
  key text PRIMARY KEY,
  token bigint NOT NULL,
  owner text,
  attempt text,
  ends_at timestamptz NOT NULL,
  abandoned boolean NOT NULL DEFAULT false,
  request text,
  waiting text[] NOT NULL DEFAULT '{}',
  note text,
  kept boolean NOT NULL DEFAULT false
)`,
    acquire: `WITH asked AS (
      INSERT INTO ${table} AS s (key, token, owner, attempt, ends_at) VALUES ($1, ${microseconds}, $2, $5, ${ends("$3")})
      ON CONFLICT (key) DO UPDATE SET
        ${unlessHeld("token", `greatest(s.token + 1, ${microseconds})`)},
        ${unlessHeld("owner", "$2")},
        ${unlessHeld("attempt", "$5")},
        ${unlessHeld("ends_at", ends("$3"))},
        ${unlessHeld("abandoned", "s.owner IS NOT NULL")},
        request = CASE WHEN NOT ${held} THEN NULL WHEN s.request = 'end' THEN s.request ELSE $4 END,
        waiting = CASE WHEN NOT ${held} THEN '{}' WHEN $2 = ANY(s.waiting) THEN s.waiting ELSE s.waiting || $2::text END
      RETURNING owner, attempt = $5 AS taken, token, note, abandoned, request, ends_at)
    SELECT taken, owner, token::text AS token, note, abandoned,
      greatest(0, extract(epoch from ends_at - ${now}) * 1000)::float8 AS lease,
      CASE WHEN NOT taken THEN pg_notify(${channel("owner")}, json_build_object('key', $1::text, 'event', request)::text)::text END
    FROM asked`,
    // A renewal that comes late must not shorten what a later one has said.
    renew: `UPDATE ${table} AS s SET ends_at = greatest(s.ends_at, ${ends("$4")}) FROM unnest($1::text[], $2::bigint[]) AS held (key, token)
    WHERE s.key = held.key AND s.token = held.token AND s.owner = $3 RETURNING s.key, s.token::text AS token, s.request`,
    update: `UPDATE ${table} SET note = $4, kept = $5 WHERE ${own}`,
    // The row stays for its token, which later ones must exceed: a statement may have to wait, and then has an old time.
    release: `WITH freed AS (
      UPDATE ${table} SET owner = NULL, request = NULL, ends_at = ${now}, note = $4, kept = $5 WHERE ${own} RETURNING waiting)
    SELECT (SELECT count(*)::int FROM freed) AS freed,
      (SELECT count(pg_notify(${channel("other")}, $6::text)::text) FROM freed, unnest(freed.waiting) AS other) AS told`,
    sweep: `DELETE FROM ${table} WHERE NOT kept AND ends_at < ${now} - make_interval(secs => $1::float8 / 1000)`,
  };
}
