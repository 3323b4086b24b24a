import * as z from "zod";
import type { Guest } from "../guest/guest.ts";

/** What the sandbox says. Sizes are in bytes. */
interface Measured {
  readonly cpuCount: number;
  /** Seconds of processor time since the beginning. */
  readonly cpuTime: number;
  readonly memTotal: number;
  readonly memUsed: number;
  readonly memCache: number;
  readonly diskTotal: number;
  readonly diskUsed: number;
}

const count = z.number().nonnegative();
const measuredSchema: z.ZodType<Measured> = z.object({
  cpuCount: count,
  cpuTime: count,
  memTotal: count,
  memUsed: count,
  memCache: count,
  diskTotal: count,
  diskUsed: count,
});

/** What a sandbox used at one moment, as E2B's metrics have it. Sizes are in bytes. */
export interface Usage extends Omit<Measured, "cpuTime"> {
  readonly timestamp: string;
  /** Seconds. */
  readonly timestampUnix: number;
  /** 100 is one processor. */
  readonly cpuUsedPct: number;
}

const mostMoments = 1000;

/** What a sandbox has used. It is measured when a client asks. */
export class UsageLog {
  readonly #moments: Usage[] = [];
  #before: { readonly at: number; readonly cpuTime: number } | undefined;

  async measure(guest: Guest): Promise<readonly Usage[]> {
    const { result } = await guest.request("usage", {}, measuredSchema);
    const { cpuTime, ...used } = result;
    const [now, before] = [Date.now(), this.#before];
    this.#before = { at: now, cpuTime };
    const busy = before && now > before.at ? (cpuTime - before.cpuTime) / ((now - before.at) / 1000) : 0;
    this.#moments.push({
      ...used,
      timestamp: new Date(now).toISOString(),
      timestampUnix: Math.floor(now / 1000),
      cpuUsedPct: Math.max(0, Math.round(busy * 10_000) / 100),
    });
    if (this.#moments.length > mostMoments) this.#moments.shift();
    return this.#moments;
  }
}
