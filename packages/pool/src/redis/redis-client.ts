/** What the directory needs of a client of the package `redis`. */
export interface RedisClient {
  evalSha(hash: string, options: ScriptCall): Promise<unknown>;
  eval(script: string, options: ScriptCall): Promise<unknown>;
  duplicate(): RedisSubscriber;
}

/** A connection for messages. */
interface RedisSubscriber {
  on(event: "error", listener: (error: unknown) => void): unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  destroy(): void;
}

/** Keys and arguments of a script. */
export interface ScriptCall {
  readonly keys: string[];
  readonly arguments: string[];
}

/** Whether something can be such a client, possibly of another installed copy. */
export function isRedisClient(value: unknown): value is RedisClient {
  if (typeof value !== "object" || value === null) return false;
  return ["evalSha", "eval", "duplicate"].every((name) => typeof Reflect.get(value, name) === "function");
}
