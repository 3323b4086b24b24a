/** What the directory needs of a `Pool` of the package `pg`. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  connect(): Promise<PostgresClient>;
}

/** A connection of a pool. */
export interface PostgresClient {
  query(text: string): Promise<unknown>;
  on(event: "notification", listener: (message: { readonly payload?: string | undefined }) => void): unknown;
  on(event: "error" | "end", listener: (error?: unknown) => void): unknown;
  /** @param isBroken - it must not be used again. */
  release(isBroken?: boolean): void;
}

/** What a statement returned. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
  readonly rowCount: number | null;
}

/** Whether something can be such a pool, possibly of another installed copy. */
export function isPostgresPool(value: unknown): value is PostgresPool {
  if (typeof value !== "object" || value === null) return false;
  // A single client has both methods, too, but its connection cannot be shared.
  return ["query", "connect"].every((name) => typeof Reflect.get(value, name) === "function") && "totalCount" in value;
}
