/** The instrumentation scope, and the version of the GenAI conventions that its names are taken from. */
export const conventions = {
  scope: "@fenced/agentchat",
  schemaUrl: "https://opentelemetry.io/schemas/gen-ai/1.42.0",
} as const;
