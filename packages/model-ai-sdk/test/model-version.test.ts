import { InvalidInputError } from "@fenced/core";
import * as ai from "ai";
import { expect, it } from "vitest";
import { AISDKChatCompletionClient } from "../src/index.ts";

/** Release 7 of the AI SDK has `isStepCount`, release 6 does not. */
const isVersion7 = "isStepCount" in ai;

function clientFor(specificationVersion: string): unknown {
  const model = { specificationVersion, modelId: "m", provider: "p", doGenerate: () => {}, doStream: () => {} };
  return Reflect.construct(AISDKChatCompletionClient, [{ model }]);
}

it("accepts models of all versions that the installed AI SDK supports", () => {
  for (const version of ["v2", "v3", ...(isVersion7 ? ["v4"] : [])]) expect(() => clientFor(version)).not.toThrow();
});

it("rejects a model of a newer or unknown version at once, and says what to install", () => {
  const newer = isVersion7 ? "v5" : "v4";
  expect(() => clientFor(newer)).toThrow(InvalidInputError);
  expect(() => clientFor(newer)).toThrow(
    `The model "m" of p implements version ${newer} of the AI SDK's model interface, but the installed \`ai\` supports v2 to ` +
      `${isVersion7 ? "v4" : "v3"}. Update the AI SDK with \`npm install ai@latest\``,
  );
  expect(() => clientFor("v1")).toThrow("Update the provider package.");
});

it("rejects unknown and invalid options", () => {
  const make = (options: object) => (): unknown => Reflect.construct(AISDKChatCompletionClient, [options]);
  expect(make({ model: "m", temprature: 0 })).toThrow('unknown option "temprature". Did you mean "temperature"?');
  expect(make({ model: "m", maxTokens: 5 })).toThrow('unknown option "maxTokens"');
  expect(make({ model: "m", modelInfo: { visoin: true } })).toThrow('"modelInfo.visoin". Did you mean "vision"?');
  expect(make({ model: {} })).toThrow('"model" is an object. It must be a language model of an AI SDK provider');
  expect(make({ model: "m", apiKey: "secret-text" })).not.toThrow(/secret-text/);
});
