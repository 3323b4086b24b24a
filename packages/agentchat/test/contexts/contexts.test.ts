import { InvalidInputError, type ModelMessage } from "@fenced/core";
import { describe, expect, it } from "vitest";
import {
  BufferedChatCompletionContext,
  type ChatCompletionContext,
  HeadAndTailChatCompletionContext,
  type ImagePart,
  TokenLimitedChatCompletionContext,
  UnboundedChatCompletionContext,
} from "../../src/index.ts";
import { throughJson } from "../support/through-json.ts";

function user(content: string): ModelMessage {
  return { role: "user", content, source: "user" };
}

const request: ModelMessage = { role: "assistant", content: [{ id: "1", name: "add", arguments: "{}" }] };
const results: ModelMessage = { role: "tool", content: [{ callId: "1", name: "add", content: "3", isError: false }] };
const plot: ImagePart = { type: "image", url: "data:image/png;base64,AA", path: "/a.png" };
const initialMessages = [user("first")];

async function filled(context: ChatCompletionContext, messages: readonly ModelMessage[]): Promise<ModelMessage[]> {
  for (const message of messages) await context.addMessage(message);
  return context.getMessages();
}

describe.each([
  ["Unbounded", () => new UnboundedChatCompletionContext({ initialMessages })],
  ["Buffered", () => new BufferedChatCompletionContext(10, { initialMessages })],
  ["HeadAndTail", () => new HeadAndTailChatCompletionContext({ headSize: 5, tailSize: 5, initialMessages })],
  ["TokenLimited", () => new TokenLimitedChatCompletionContext({ tokenLimit: 1000, initialMessages })],
])("%sChatCompletionContext", (_, make) => {
  it("keeps what fits, in order", async () => {
    expect(await filled(make(), [request, results, user("a")])).toEqual([user("first"), request, results, user("a")]);
  });

  it("resets to its initial messages", async () => {
    const context = make();
    await context.addMessage(user("a"));
    await context.reset();
    expect(await context.getMessages()).toEqual(initialMessages);
  });

  it("saves and loads its state through JSON", async () => {
    const image: ModelMessage = {
      role: "user",
      content: [{ type: "text", text: "look" }, plot],
    };
    const context = make();
    const messages = await filled(context, [request, results, image, { role: "system", content: "s" }]);
    const other = make();
    await other.loadState(throughJson(await context.saveState()));
    expect(await other.getMessages()).toEqual(messages);
    await expect(other.loadState({ messages: [{ role: "nobody" }] })).rejects.toSatisfy(InvalidInputError.isInstance);
  });

  it("takes undefined fields of messages as missing", async () => {
    const messages: ModelMessage[] = [request, results, { role: "system", content: "s" }, user("a")];
    const given = messages.map((message): ModelMessage =>
      Object.assign({ source: undefined, thought: undefined }, message),
    );
    const other = make();
    await filled(other, given);
    expect(await other.saveState()).toEqual({ messages: [...initialMessages, ...messages] });
  });

  it("returns a copy of its list", async () => {
    const context = make();
    (await context.getMessages()).pop();
    expect(await context.getMessages()).toEqual(initialMessages);
  });
});

describe("BufferedChatCompletionContext", () => {
  it("keeps the last messages", async () => {
    const kept = await filled(new BufferedChatCompletionContext(2), [user("a"), user("b"), user("c")]);
    expect(kept).toEqual([user("b"), user("c")]);
  });

  it.each([
    [1, [user("b")]],
    [2, [user("b")]],
    [3, [request, results, user("b")]],
  ])("never starts with tool results without their call (size %i)", async (size, expected) => {
    const kept = await filled(new BufferedChatCompletionContext(size), [user("a"), request, results, user("b")]);
    expect(kept).toEqual(expected);
  });

  it("keeps the last call with its results even beyond the buffer size", async () => {
    expect(await filled(new BufferedChatCompletionContext(1), [user("a"), request, results])).toEqual([
      request,
      results,
    ]);
  });

  it("leaves out results that never had a call", async () => {
    const initial = [results, user("a")];
    expect(await new BufferedChatCompletionContext(5, { initialMessages: initial }).getMessages()).toEqual([user("a")]);
  });

  it.each([0, -1, 0.5])("rejects a size of %s", (size) => {
    expect(() => new BufferedChatCompletionContext(size)).toThrow('"bufferSize" is');
  });
});

describe("HeadAndTailChatCompletionContext", () => {
  it("says how many messages it left out", async () => {
    const context = new HeadAndTailChatCompletionContext({ headSize: 1, tailSize: 2 });
    const kept = await filled(context, ["a", "b", "c", "d", "e"].map(user));
    expect(kept.map(({ content }) => content)).toEqual(["a", "(2 earlier messages are left out here.)", "d", "e"]);
  });

  it("does not separate calls from their results", async () => {
    const messages = [user("a"), request, results, user("b"), request, results, user("c")];
    const context = new HeadAndTailChatCompletionContext({ headSize: 2, tailSize: 2 });
    const kept = await filled(context, messages);
    expect(kept.map(({ role }) => role)).toEqual(["user", "user", "user"]);
    const wider = new HeadAndTailChatCompletionContext({ headSize: 3, tailSize: 3 });
    expect(await filled(wider, messages)).toEqual([
      user("a"),
      request,
      results,
      { role: "user", source: "system", content: "(1 earlier messages are left out here.)" },
      request,
      results,
      user("c"),
    ]);
  });
});

describe("TokenLimitedChatCompletionContext", () => {
  const countTokens = (messages: readonly ModelMessage[]): number => messages.length;

  it("keeps the first message and as many of the last as fit", async () => {
    const context = new TokenLimitedChatCompletionContext({ tokenLimit: 3, countTokens });
    const kept = await filled(context, ["a", "b", "c", "d"].map(user));
    expect(kept.map(({ content }) => content)).toEqual(["a", "c", "d"]);
  });

  it("does not separate calls from their results, and always keeps the last message", async () => {
    const make = (tokenLimit: number): TokenLimitedChatCompletionContext =>
      new TokenLimitedChatCompletionContext({ tokenLimit, countTokens: async (messages) => messages.length });
    const messages = [user("a"), user("b"), request, results];
    expect(await filled(make(3), messages)).toEqual([user("a"), request, results]);
    expect(await filled(make(2), messages)).toEqual([request, results]);
    expect(await filled(make(1), messages)).toEqual([request, results]);
    expect(await filled(make(1), [user("a")])).toEqual([user("a")]);
    expect(await filled(make(1), [])).toEqual([]);
  });

  it("estimates tokens if no counter is given", async () => {
    const context = new TokenLimitedChatCompletionContext({ tokenLimit: 120 });
    const kept = await filled(context, [user("task"), user("x".repeat(400)), user("y".repeat(400))]);
    expect(kept).toHaveLength(2);
    const image: ModelMessage = { role: "user", content: [{ type: "image", url: "data:image/png;base64,AA" }] };
    const big = new TokenLimitedChatCompletionContext({ tokenLimit: 900 });
    expect(await filled(big, [user("task"), image, user("end")])).toEqual([user("task"), user("end")]);
  });

  it("cannot be dumped with a countTokens function", () => {
    expect(() => new TokenLimitedChatCompletionContext({ tokenLimit: 1, countTokens }).dumpComponent()).toThrow(
      /countTokens/,
    );
  });
});
