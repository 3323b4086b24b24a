import type { RunEvent, SubmittedRun } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";

/** The events of a submitted run, up to its end. */
export function eventsOf(kit: CaseContext, run: SubmittedRun, after?: number): Promise<RunEvent[]> {
  const read = async (): Promise<RunEvent[]> => {
    const all: RunEvent[] = [];
    for await (const event of run.events({ after })) all.push(event);
    return all;
  };
  return kit.within("the events", read());
}
