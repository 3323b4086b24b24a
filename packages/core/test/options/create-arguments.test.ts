import { InvalidInputError, type ModelMessage } from "@fenced/core";
import { checkCreateArguments, checkModelMessage } from "@fenced/core/options";
import { describe, expect, it } from "vitest";
import * as z from "zod";

const messages: ModelMessage[] = [
  { role: "system", content: "Be brief." },
  {
    role: "user",
    content: [
      { type: "text", text: "What is it?" },
      { type: "image", url: "data:image/png;base64,AA==" },
    ],
  },
  { role: "assistant", content: [{ id: "1", name: "look", arguments: "{}" }], thought: "hm", source: "a" },
  { role: "tool", content: [{ callId: "1", name: "look", content: "a dot", isError: false }] },
];
const tool = { name: "look", description: "Looks.", parameters: { type: "object" } };

describe("checkCreateArguments", () => {
  it.each<[unknown, unknown, string]>([
    ["Hello", {}, 'Client: "messages" is a string. It must be an array of messages: [{ role: "user"'],
    [undefined, {}, '"messages" is missing.'],
    [["Hello"], {}, '"messages[0]" is a string. It must be an object.'],
    [[{ role: "usr", content: "x" }], {}, '"messages[0].role" is "usr". It must be "system", "user", "assistant" or'],
    [[{ content: "x" }], {}, '"messages[0].role" is missing.'],
    [[{ role: "user", contnet: "x" }], {}, '"messages[0].content" is missing; unknown option "messages[0].contnet".'],
    [[{ role: "user", content: "x", souce: "a" }], {}, '"messages[0].souce". Did you mean "source"?'],
    [[{ role: "assistant", content: "x", thougth: "a" }], {}, 'Did you mean "thought"?'],
    [
      [{ role: "user", content: [{ type: "txt" }] }],
      {},
      '"messages[0].content[0].type" is "txt". It must be "text" or',
    ],
    [[{ role: "assistant", content: [{ id: 1 }] }], {}, '"messages[0].content[0].id" must be a string.'],
    [[], { tool: [tool] }, 'unknown option "tool". Did you mean "tools"?'],
    [[], { tools: tool }, '"tools" is an object. It must be an array.'],
    [[], { tools: [{ ...tool, paramters: {} }] }, '"tools[0].paramters". Did you mean "parameters"?'],
    [[], { tools: [{ ...tool, parameters: z.object({}) }] }, "It must be a JSON Schema object."],
    [[], { jsonSchema: "object" }, "It must be a JSON Schema object."],
    [[], { signal: new AbortController() }, '"signal" is an object. It must be an AbortSignal.'],
    [[], null, "the options are null"],
  ])("rejects %j with %j", (given, options, message) => {
    const check = () => checkCreateArguments(given, options, "Client");
    expect(check).toThrow(InvalidInputError);
    expect(check).toThrow(message);
  });

  it("returns valid options", () => {
    const { signal } = new AbortController();
    const options = { tools: [tool], jsonSchema: { type: "object" }, signal };
    expect(checkCreateArguments(messages, { ...options, maxTokens: undefined }, "Client")).toEqual(options);
    expect(checkCreateArguments(messages, {}, "Client")).toEqual({});
  });

  it("does not show the text of messages", () => {
    const given = [{ role: "user", content: "secret-text", souce: "secret-text" }];
    expect(() => checkCreateArguments(given, {}, "Client")).toThrow(expect.not.stringContaining("secret-text"));
  });
});

describe("checkModelMessage", () => {
  it.each(messages)("accepts %j", (message) => {
    expect(() => checkModelMessage(message, "addMessage")).not.toThrow();
  });

  it.each(messages)("takes undefined fields of %j as missing", (message) => {
    const given = { source: undefined, thought: undefined, ...message };
    expect(() => checkModelMessage(given, "addMessage")).not.toThrow();
    expect(() => checkCreateArguments([given], {}, "Client")).not.toThrow();
  });

  it("rejects a value that is not a message", () => {
    expect(() => checkModelMessage("Hello", "addMessage")).toThrow('addMessage: "message" is a string.');
  });
});
