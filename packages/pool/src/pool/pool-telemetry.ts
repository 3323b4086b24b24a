import { type GaugeDefinition, type Operation, recordGauge, watch } from "@fenced/core/telemetry";

/** The current number of a pool's executors and waiting callers. */
export interface PoolCounts {
  /** Executors ready for a caller. */
  readonly ready: number;
  /** Executors being created, started, warmed up, or reset for their next use. */
  readonly starting: number;
  /** Executors in use. */
  readonly leased: number;
  /** Executors being stopped; they count towards `max` until they are gone. */
  readonly ending: number;
  /** Callers waiting for an executor. */
  readonly waiting: number;
}

const scope = "@fenced/pool";
const executors: GaugeDefinition = {
  name: "fenced.pool.executors",
  description: "How many executors a pool has in each state",
  unit: "{executor}",
};
const waiting: GaugeDefinition = {
  name: "fenced.pool.waiting",
  description: "How many callers wait for an executor of a pool",
  unit: "{caller}",
};

/** Reports the number of a pool's executors to OpenTelemetry. `docs/telemetry.md` documents the names. */
export function recordPoolCounts(pool: string, { waiting: callers, ...states }: PoolCounts): void {
  const name = { "fenced.pool.name": pool };
  for (const [state, count] of Object.entries(states)) {
    recordGauge(scope, executors, count, { ...name, "fenced.pool.state": state });
  }
  recordGauge(scope, waiting, callers, name);
}

/** Records the wait for an executor as a span and a duration. */
export function watchAcquire<T>(pool: string, action: (operation: Operation) => Promise<T>): Promise<T> {
  return watch(
    {
      scope,
      name: "fenced.pool.acquire",
      attributes: { "fenced.pool.name": pool },
      duration: {
        name: "fenced.pool.acquire.duration",
        description: "How long a caller waited for an executor of a pool",
        unit: "s",
        boundaries: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
      },
      metricAttributes: { "fenced.pool.name": pool },
    },
    action,
  );
}
