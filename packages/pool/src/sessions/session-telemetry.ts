import { type GaugeDefinition, recordGauge } from "@fenced/core/telemetry";

/** The current number of sessions and runs. */
export interface SessionCounts {
  /** Sessions that have started and not ended, whether or not anything is running in them. */
  readonly open: number;
  /** Sessions that are starting. */
  readonly starting: number;
  /** Sessions that are ending; they count towards `maxSessions` until they are gone. */
  readonly ending: number;
  /** Sessions in which something is running. */
  readonly running: number;
  /** Runs that are waiting for their turn. */
  readonly waiting: number;
}

const scope = "@fenced/pool";
const sessions: GaugeDefinition = {
  name: "fenced.sessions",
  description: "How many sessions there are in each state; a running session also counts as open",
  unit: "{session}",
};
const waiting: GaugeDefinition = {
  name: "fenced.sessions.waiting_runs",
  description: "How many runs wait for their turn",
  unit: "{run}",
};

/** Reports the number of sessions to OpenTelemetry. `docs/telemetry.md` documents the names. */
export function recordCounts({ open, starting, running, waiting: runs }: SessionCounts): void {
  for (const [state, count] of Object.entries({ open, starting, running })) {
    recordGauge(scope, sessions, count, { "fenced.session.state": state });
  }
  recordGauge(scope, waiting, runs, {});
}
