import { lookup } from "node:dns/promises";

/** Maximum concurrent lookups: each occupies one of the few threads that all of Node's file calls share. */
const mostLookups = 2;
let running = 0;
const waiting: (() => void)[] = [];

/** Asks the system, including its `hosts` file. */
export async function resolveHost(host: string, signal: AbortSignal): Promise<string[]> {
  if (running < mostLookups) running += 1;
  else {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
    });
  }
  try {
    signal.throwIfAborted();
    return (await lookup(host, { all: true, order: "verbatim" })).map(({ address }) => address);
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }
}
