import { describe, expect, it } from "vitest";
import { textMessage, TextMentionTermination, thoughtEvent } from "../../src/index.ts";

function say(content: string, source: string = "coder"): ReturnType<typeof textMessage> {
  return textMessage({ source, content });
}

describe("TextMentionTermination", () => {
  it("fires on a message that contains the text, but not on a thought", async () => {
    const condition = new TextMentionTermination("TERMINATE");
    expect(await condition.check([say("terminate")])).toBeUndefined();
    expect(await condition.check([thoughtEvent({ source: "coder", content: "TERMINATE?" })])).toBeUndefined();
    expect(await condition.check([say("done. TERMINATE")])).toMatchObject({
      content: '"coder" mentioned "TERMINATE".',
    });
  });

  it("ignores messages from other sources", async () => {
    const condition = new TextMentionTermination("TERMINATE", { sources: ["coder"] });
    expect(await condition.check([say("say TERMINATE at the end", "user")])).toBeUndefined();
    expect(await condition.check([say("TERMINATE")])).toBeDefined();
  });

  it.each([
    ["code to run", "```python\nx\n```\nTERMINATE", false],
    ["code in a list", "- do\n  ```sh\n  x\n  ```\n\nTERMINATE", false],
    ["an example of data", "```json\n{}\n```\nTERMINATE", true],
    ["a fence without a language", "```\nx\n```\nTERMINATE", true],
    ["a fence that never closes", "TERMINATE\n```python\nx", true],
    ["no fence", "TERMINATE", true],
  ])("with unlessCode, fires only if there is no code to run: %s", async (_, content, ends) => {
    const condition = new TextMentionTermination("TERMINATE", { unlessCode: true });
    expect((await condition.check([say(content)])) !== undefined).toBe(ends);
    expect(await new TextMentionTermination("TERMINATE").check([say(content)])).toBeDefined();
  });

  it("rejects an empty text, which every message would contain", () => {
    expect(() => new TextMentionTermination("")).toThrow('"text" is empty');
  });
});
