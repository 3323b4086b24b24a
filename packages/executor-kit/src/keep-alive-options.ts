import { longestTimer } from "@fenced/core/abort";
import { type OptionSchemas, wholeNumberOption } from "@fenced/core/options";

/** Options of executors whose sessions can outlive their programs. */
export interface KeepAliveOptions {
  /**
   * How long a session lives while no program is connected to it, in milliseconds. It then survives the end of its
   * program, even by `kill -9`, `detach()`, and a broken connection; `connectExecutor` connects to it with
   * `executor.handle`. If nobody comes back in time, it ends by itself, and nothing is left. `stop()` and disposal still
   * end it at once. Default: 0, it ends with its program.
   */
  readonly keepAliveMs?: number | undefined;
}

/** The schemas of these options. */
export const keepAliveOptions: OptionSchemas<KeepAliveOptions> = {
  keepAliveMs: wholeNumberOption({ from: 0, to: longestTimer, unit: "ms" }).exactOptional(),
};

/**
 * Returns settings without functions, callbacks and what was restored, for the handle of a session: a program
 * that connects passes its own.
 */
export function withoutCallbacks(settings: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { functions: _, restore: __, ...rest } = settings;
  return withoutFunctions(rest);
}

function withoutFunctions(settings: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]: [string, unknown]): [string, unknown][] => {
      if (typeof value === "function") return [];
      const isPlain = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
      return [[name, isPlain ? withoutFunctions(value) : value]];
    }),
  );
}
