import type { ModelInfo } from "@fenced/core";
import type { LanguageModel } from "ai";

/** Names of models that are known to support images; the client sends none to other models. */
const seeing =
  /gpt-4o|gpt-4\.1|gpt-4-turbo|gpt-[5-9]|chatgpt|\bo[13](?!-mini|-preview)\b|\bo4-|claude-(?!2|instant)|gemini|gemma-?[34]|grok-[45]|pixtral|mistral-(?:medium|small|large)-(?:3|latest)|llama-?4|llava|vision|nova-(?:lite|pro|premier)|[-\d]vl\b|multimodal/i;

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

/** What a model can most likely do, judging by its id and object. */
export function defaultModelInfo(model: LanguageModel): ModelInfo {
  const family = typeof model === "string" ? model : model.modelId;
  const provider = typeof model === "string" ? undefined : providerName(model.provider);
  return {
    family: family === "" ? "unknown" : family,
    ...(provider === undefined ? {} : { provider }),
    vision: seeing.test(family),
    functionCalling: true,
    // Some providers' models report this themselves, such as OpenAI-compatible ones; all others support it.
    structuredOutput: typeof model === "string" || Reflect.get(model, "supportsStructuredOutputs") !== false,
  };
}

/** Converts an AI SDK provider name to its name in telemetry; unknown ones keep the part before the first dot. */
function providerName(provider: string): string | undefined {
  const known = names.find(([start]) => provider === start || provider.startsWith(`${start}.`));
  const [own = ""] = provider.split(".");
  return known?.[1] ?? (own === "" ? undefined : own);
}
