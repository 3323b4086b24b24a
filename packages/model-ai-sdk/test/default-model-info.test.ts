import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { describe, expect, it } from "vitest";
import { defaultModelInfo } from "../src/default-model-info.ts";
import { AISDKChatCompletionClient } from "../src/index.ts";

describe("defaultModelInfo", () => {
  it.each([
    "gpt-4o-mini",
    "gpt-4.1",
    "openai/gpt-5.1",
    "o3",
    "o4-mini",
    "anthropic/claude-sonnet-4.5",
    "gemini-2.5-flash",
    "gemma3:27b",
    "qwen2.5-vl-7b-instruct",
    "llama-4-scout",
    "llama-3.2-11b-vision-preview",
    "pixtral-12b",
  ])("knows that %s has vision", (model) => {
    expect(defaultModelInfo(model)).toMatchObject({ family: model, vision: true });
  });

  it.each([
    "gpt-3.5-turbo",
    "gpt-oss-120b",
    "o1-mini",
    "o3-mini",
    "deepseek-chat",
    "qwen3-coder",
    "llama-3.3-70b",
    "claude-2.1",
    "qwq-32b",
  ])("assumes no vision for %s", (model) => {
    expect(defaultModelInfo(model).vision).toBe(false);
  });

  it("asks a model object whether it supports structured output", () => {
    const settings = { name: "test", baseURL: "http://localhost" };
    const strict = createOpenAICompatible({ ...settings, supportsStructuredOutputs: true });
    expect(defaultModelInfo(strict("x")).structuredOutput).toBe(true);
    expect(defaultModelInfo(createOpenAICompatible(settings)("x")).structuredOutput).toBe(false);
    expect(defaultModelInfo("openai/gpt-5").structuredOutput).toBe(true);
  });

  it.each([
    ["openai", "openai"],
    ["azure-openai", "azure.ai.openai"],
    ["google.vertex", "gcp.vertex_ai"],
    ["google.generative-ai", "gcp.gemini"],
    ["openai-compatible", "openai-compatible"],
    ["lm-studio", "lm-studio"],
  ])("maps the provider %s to its name in telemetry: %s", (name, provider) => {
    const model = createOpenAICompatible({ name, baseURL: "http://localhost" })("x");
    expect(model.provider).toBe(`${name}.chat`);
    expect(defaultModelInfo(model).provider).toBe(provider);
  });

  it("does not know the provider of a model id", () => {
    expect(defaultModelInfo("openai/gpt-5")).not.toHaveProperty("provider");
  });

  it("is overridden by the caller's modelInfo", () => {
    const client = new AISDKChatCompletionClient({
      model: "gpt-4o",
      modelInfo: { vision: false, contextWindow: 128_000 },
    });
    expect(client.modelInfo).toEqual({
      family: "gpt-4o",
      vision: false,
      functionCalling: true,
      structuredOutput: true,
      contextWindow: 128_000,
    });
  });
});
