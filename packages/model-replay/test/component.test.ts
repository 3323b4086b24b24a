import { loadComponent, type ComponentModel } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { RecordingChatCompletionClient, ReplayChatCompletionClient } from "../src/index.ts";
import { answer, ask, PreparedClient, temporaryFile } from "./support.ts";

class Client extends PreparedClient {
  static fromConfig(): Client {
    return new Client([answer("a"), answer("b")]);
  }
}

const loadOptions = {
  allow: ["prepared"],
  importModule: async (specifier: string): Promise<unknown> =>
    specifier === "prepared" ? { Client } : import("../src/index.ts"),
};

function throughJson(model: ComponentModel): ComponentModel {
  const text = JSON.stringify(model);
  return JSON.parse(text) as ComponentModel;
}

describe("components", () => {
  it("are dumped and loaded: recording and replay", async () => {
    const file = await temporaryFile();
    const recording = new RecordingChatCompletionClient({ client: new PreparedClient([]), file, append: true });
    const loadedRecording = await loadComponent<RecordingChatCompletionClient>(
      throughJson(recording.dumpComponent()),
      loadOptions,
    );
    await loadedRecording.create(ask("one"));
    expect(loadedRecording.dumpComponent()).toEqual(recording.dumpComponent());

    const replay = new ReplayChatCompletionClient({ file, chunkDelayMs: 1, strict: true });
    const loaded = await loadComponent<ReplayChatCompletionClient>(throughJson(replay.dumpComponent()), loadOptions);
    expect(loaded.dumpComponent()).toEqual({
      provider: "@fenced/model-replay:ReplayChatCompletionClient",
      componentType: "model",
      version: 1,
      config: { file, chunkDelayMs: 1, strict: true },
    });
    expect(await loaded.create(ask("one"))).toEqual(answer("a"));
  });

  it("are loaded from a config that is checked", async () => {
    const model = { provider: "@fenced/model-replay:ReplayChatCompletionClient", componentType: "model", version: 1 };
    await expect(loadComponent({ ...model, config: { fil: "x" } }, loadOptions)).rejects.toThrow(/fil/);
    const recording = {
      ...model,
      provider: "@fenced/model-replay:RecordingChatCompletionClient",
      config: { file: "x", client: { ...model, config: { fil: "x" } } },
    };
    await expect(loadComponent(recording, loadOptions)).rejects.toThrow(/^At client of /);
  });
});
