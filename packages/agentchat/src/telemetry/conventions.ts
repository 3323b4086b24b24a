import type { ModelUsage } from "@fenced/core";
import type { HistogramDefinition, TelemetryAttributes } from "@fenced/core/telemetry";

/** The instrumentation scope, and the version of the GenAI conventions that its names are taken from. */
export const conventions = {
  scope: "@fenced/agentchat",
  schemaUrl: "https://opentelemetry.io/schemas/gen-ai/1.42.0",
} as const;

/** Tokens as attributes; none if the service did not report them. */
export function usageAttributes({ promptTokens, completionTokens }: ModelUsage): TelemetryAttributes {
  return {
    "gen_ai.usage.input_tokens": promptTokens === 0 ? undefined : promptTokens,
    "gen_ai.usage.output_tokens": completionTokens === 0 ? undefined : completionTokens,
  };
}

// Names, units and buckets are those of the GenAI conventions.
const shortSeconds: readonly number[] = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

export const callDuration: HistogramDefinition = {
  name: "gen_ai.client.operation.duration",
  description: "GenAI operation duration",
  unit: "s",
  boundaries: shortSeconds,
};

export const tokenUsage: HistogramDefinition = {
  name: "gen_ai.client.token.usage",
  description: "Number of input and output tokens used",
  unit: "{token}",
  boundaries: [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864],
};

export const agentDuration: HistogramDefinition = {
  name: "gen_ai.invoke_agent.duration",
  description: "The end-to-end duration of a single agent invocation",
  unit: "s",
  boundaries: [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6],
};

export const teamDuration: HistogramDefinition = {
  name: "gen_ai.workflow.duration",
  description: "GenAI workflow duration",
  unit: "s",
  boundaries: [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200],
};

export const toolDuration: HistogramDefinition = {
  name: "gen_ai.execute_tool.duration",
  description: "The duration of a single tool execution",
  unit: "s",
  boundaries: shortSeconds,
};
