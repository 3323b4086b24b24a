import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ComponentError, loadComponent } from "@fenced/core";
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { afterEach, describe, expect, it } from "vitest";
import { AISDKChatCompletionClient } from "../src/index.ts";
import { clientOf } from "./support.ts";

afterEach(() => {
  globalThis.AI_SDK_DEFAULT_PROVIDER = undefined;
});

describe("dumpComponent", () => {
  it("rejects a model object, which may hold a key", () => {
    expect(() => clientOf({ baseURL: "http://localhost" }).dumpComponent()).toThrow(ComponentError);
  });

  it("dumps a client with a model id, and loadComponent restores it", async () => {
    const client = new AISDKChatCompletionClient({
      model: "test/model",
      temperature: 0,
      modelInfo: { vision: true },
      stopSequences: ["END"],
    });
    const model = client.dumpComponent();
    expect(model).toStrictEqual({
      provider: "@fenced/model-ai-sdk:AISDKChatCompletionClient",
      componentType: "model",
      version: 1,
      config: { model: "test/model", temperature: 0, modelInfo: { vision: true }, stopSequences: ["END"] },
    });
    const loaded = await loadComponent<AISDKChatCompletionClient>(model, {
      importModule: () => import("../src/index.ts"),
    });
    expect(loaded.dumpComponent()).toEqual(model);
    expect(loaded.modelInfo).toEqual(client.modelInfo);
  });

  it("returns a config that is checked when it is loaded", async () => {
    const model = new AISDKChatCompletionClient({ model: "test/model" }).dumpComponent();
    await expect(
      loadComponent(
        { ...model, config: { model: "test/model", temprature: 1 } },
        { importModule: () => import("../src/index.ts") },
      ),
    ).rejects.toThrow(/temprature/);
  });
});

describe("a model id", () => {
  it("is resolved by the AI SDK's global provider", async () => {
    await using server = await startOpenAIServer([{ text: "hello" }]);
    globalThis.AI_SDK_DEFAULT_PROVIDER = createOpenAICompatible({ name: "test", baseURL: server.baseURL });
    const client = new AISDKChatCompletionClient({ model: "some-model" });
    expect((await client.create([{ role: "user", content: "Hi" }])).content).toBe("hello");
    expect(server.requests[0]?.body.model).toBe("some-model");
  });
});
