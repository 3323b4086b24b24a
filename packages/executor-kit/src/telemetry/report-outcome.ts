import type { BlockResult, CodeResult } from "@fenced/core";
import { captured, type HistogramDefinition, type Operation, type TelemetryAttributes } from "@fenced/core/telemetry";

const blockOutput: HistogramDefinition = {
  name: "fenced.block.output.size",
  description: "How much of a code block's output the result keeps",
  unit: "By",
  boundaries: [0, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304],
};

export function reportRun(operation: Operation, result: CodeResult): void {
  operation.set({ ...outcome(result), "fenced.state_lost": result.stateLost });
}

/** @param displays - their number. */
export function reportBlock(
  operation: Operation,
  { result, displays }: { readonly result: BlockResult; readonly displays: number },
  metricAttributes: TelemetryAttributes,
): void {
  const bytes = Buffer.byteLength(result.output);
  operation.record(blockOutput, bytes, metricAttributes);
  operation.set({
    ...outcome(result),
    "fenced.block.output.size": bytes,
    "fenced.block.displays": displays,
  });
  operation.setContent(() => ({ "fenced.block.output": captured(result.output) }));
  if (result.timedOut) operation.failAs("timeout");
  else if (result.exitCode !== 0) operation.failAs("program_failed");
}

function outcome({
  exitCode,
  timedOut,
  truncated,
}: Pick<CodeResult, "exitCode" | "timedOut" | "truncated">): TelemetryAttributes {
  return { "fenced.exit_code": exitCode, "fenced.timed_out": timedOut, "fenced.truncated": truncated };
}
