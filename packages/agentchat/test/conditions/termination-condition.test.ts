import { describe, expect, it } from "vitest";
import { ExternalTermination, MaxMessageTermination, textMessage, TextMentionTermination } from "../../src/index.ts";

function say(content: string): ReturnType<typeof textMessage> {
  return textMessage({ source: "a", content });
}

describe("and", () => {
  it("fires once both have fired, even in different checks", async () => {
    const both = new TextMentionTermination("DONE").and(new MaxMessageTermination(3));
    expect(await both.check([say("DONE")])).toBeUndefined();
    expect(await both.check([say("x")])).toBeUndefined();
    expect(both.terminated).toBe(false);
    expect((await both.check([say("y")]))?.content).toBe(
      '"a" mentioned "DONE". The limit of 3 messages is reached (3).',
    );
    expect(both.terminated).toBe(true);
    await both.reset();
    expect(await both.check([say("x"), say("y"), say("z")])).toBeUndefined();
  });
});

describe("or", () => {
  it("fires as soon as either does", async () => {
    const either = new TextMentionTermination("DONE").or(new MaxMessageTermination(3));
    expect(await either.check([say("x")])).toBeUndefined();
    expect((await either.check([say("DONE")]))?.content).toBe('"a" mentioned "DONE".');
    await either.reset();
    expect(await either.check([say("x"), say("y")])).toBeUndefined();
    expect(await either.check([say("z")])).toBeDefined();
  });

  it("nests", async () => {
    const external = new ExternalTermination();
    const condition = new MaxMessageTermination(9).or(new TextMentionTermination("DONE").and(external));
    expect(await condition.check([say("DONE")])).toBeUndefined();
    external.set();
    expect(await condition.check([])).toBeDefined();
  });

  it("keeps a condition that is set while the reset is pending", async () => {
    const external = new ExternalTermination();
    const condition = new MaxMessageTermination(9).or(new MaxMessageTermination(8).or(external));
    const reset = condition.reset();
    external.set();
    await reset;
    expect(await condition.check([])).toBeDefined();
  });
});
