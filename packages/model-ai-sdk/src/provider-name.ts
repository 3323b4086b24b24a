/** What the AI SDK's packages call their providers (`openai.chat`), and OpenTelemetry's GenAI conventions (`openai`). */
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

/** A provider of the AI SDK by the name that telemetry knows it by; one that is not known there by its own. */
export function providerName(provider: string): string | undefined {
  const known = names.find(([start]) => provider === start || provider.startsWith(`${start}.`));
  const [own = ""] = provider.split(".");
  return known?.[1] ?? (own === "" ? undefined : own);
}
