import { type GaugeDefinition, recordGauge } from "@fenced/core/telemetry";
import type { SessionCounts } from "./session-counts.ts";

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
