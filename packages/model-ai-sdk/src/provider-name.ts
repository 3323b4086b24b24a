/** Provider names of the AI SDK's packages (`openai.chat`), and of OpenTelemetry's GenAI conventions (`openai`). */
const names: readonly (readonly [start: string, name: string])[] = [
  ["amazon-bedrock", "aws.bedrock"],
  ["anthropic", "anthropic"],
  ["azure", "azure.ai.openai"],
  ["azure-openai", "azure.ai.openai"],
  ["cohere", "cohere"],
  ["deepseek", "deepseek"],
  ["google.vertex", "gcp.vertex_ai"],
  ["vertex", "gcp.vertex_ai"],
  ["google", "gcp.gemini"],
  ["groq", "groq"],
  ["mistral", "mistral_ai"],
  ["moonshotai", "moonshot_ai"],
  ["openai", "openai"],
  ["perplexity", "perplexity"],
  ["xai", "x_ai"],
];

/** Converts an AI SDK provider name to its name in telemetry; unknown ones keep the part before the first dot. */
export function providerName(provider: string): string | undefined {
  const known = names.find(([start]) => provider === start || provider.startsWith(`${start}.`));
  const [own = ""] = provider.split(".");
  return known?.[1] ?? (own === "" ? undefined : own);
}
