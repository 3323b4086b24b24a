import { describe, expect, it } from "vitest";
import { textMessage, TextMentionTermination, thoughtEvent } from "../../src/index.ts";

function say(content: string, source: string = "coder"): ReturnType<typeof textMessage> {
  return textMessage({ source, content });
}

describe("TextMentionTermination", () => {
  it("fires when a message holds the text, not when a thought does", async () => {
    const condition = new TextMentionTermination("TERMINATE");
    expect(await condition.check([say("terminate")])).toBeUndefined();
    expect(await condition.check([thoughtEvent({ source: "coder", content: "TERMINATE?" })])).toBeUndefined();
    expect(await condition.check([say("done. TERMINATE")])).toMatchObject({
      content: '"coder" mentioned "TERMINATE".',
    });
  });

  it("listens to its sources only", async () => {
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
  ])("with unlessCode, lets %s decide", async (_, content, ends) => {
    const condition = new TextMentionTermination("TERMINATE", { unlessCode: true });
    expect((await condition.check([say(content)])) !== undefined).toBe(ends);
    expect(await new TextMentionTermination("TERMINATE").check([say(content)])).toBeDefined();
  });

  it("rejects an empty text, which every message holds", () => {
    expect(() => new TextMentionTermination("")).toThrow('"text" is empty');
  });
});
