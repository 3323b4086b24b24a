import type { ModelUsage } from "@fenced/core";
import type { TelemetryAttributes } from "@fenced/core/telemetry";

/** Tokens as attributes; none if the service did not report them. */
export function usageAttributes({ promptTokens, completionTokens }: ModelUsage): TelemetryAttributes {
  return {
    "gen_ai.usage.input_tokens": promptTokens === 0 ? undefined : promptTokens,
    "gen_ai.usage.output_tokens": completionTokens === 0 ? undefined : completionTokens,
  };
}
