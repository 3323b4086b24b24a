import { type Operation, watchStream } from "@fenced/core/telemetry";
import { isTaskResult, type TaskResult } from "../agents/chat-agent.ts";
import { leavableStream } from "../common/leavable-stream.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { conventions, teamDuration } from "./conventions.ts";

type Items = AsyncGenerator<AgentMessage | TaskResult, void, void>;

/** Watches a team's run, which its consumer may leave: see `leavableStream`. */
export function watchTeam(
  { name, participants }: { readonly name: string; readonly participants: number },
  start: (signal: AbortSignal) => Items,
  signal: AbortSignal | undefined,
): Items {
  return watchStream(
    {
      ...conventions,
      name: `invoke_workflow ${name}`,
      attributes: {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": name,
        "fenced.team.participants": participants,
      },
      duration: teamDuration,
      metricAttributes: { "gen_ai.workflow.name": name },
    },
    (operation) => leavableStream((ended) => endAtResult(operation, start(ended)), signal),
  );
}

async function* endAtResult(operation: Operation, items: Items): Items {
  for await (const item of items) {
    if (isTaskResult(item)) {
      operation.set({ "fenced.team.messages": item.messages.length });
      operation.end();
    }
    yield item;
  }
}
