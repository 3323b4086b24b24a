import { ComponentError, InvalidInputError } from "@fenced/core";
import { describe, expect, it, vi } from "vitest";
import {
  ExternalTermination,
  FunctionalTermination,
  FunctionCallTermination,
  handoffMessage,
  HandoffTermination,
  MaxMessageTermination,
  SourceMatchTermination,
  stopMessage,
  StopMessageTermination,
  textMessage,
  TextMessageTermination,
  thoughtEvent,
  TimeoutTermination,
  TokenUsageTermination,
  toolCallExecutionEvent,
} from "../../src/index.ts";

const said = textMessage({ source: "a", content: "hello" });
const thought = thoughtEvent({ source: "a", content: "hm" });

describe("MaxMessageTermination", () => {
  it("counts messages across checks, and events only with includeEvents", async () => {
    const condition = new MaxMessageTermination(2);
    expect(await condition.check([said, thought])).toBeUndefined();
    expect(await condition.check([said])).toMatchObject({ type: "StopMessage", source: "MaxMessageTermination" });
    const all = new MaxMessageTermination(2, { includeEvents: true });
    expect(await all.check([said, thought])).toBeDefined();
    await condition.reset();
    expect(await condition.check([said])).toBeUndefined();
  });

  it.each([0, -1, 1.5, Number.NaN])("rejects a limit of %s", (limit) => {
    expect(() => new MaxMessageTermination(limit)).toThrow('"maxMessages" is');
  });
});

describe("StopMessageTermination", () => {
  const stop = stopMessage({ source: "a", content: "enough" });

  it("fires on a stop message, and on no other", async () => {
    const condition = new StopMessageTermination();
    expect(await condition.check([said, thought])).toBeUndefined();
    expect(condition.terminated).toBe(false);
    expect(await condition.check([said, stop])).toMatchObject({ type: "StopMessage", content: '"a" asked to stop.' });
    expect(condition.terminated).toBe(true);
  });

  it("rejects checks after it has fired, until it is reset", async () => {
    const condition = new StopMessageTermination();
    await condition.check([stop]);
    await expect(condition.check([said])).rejects.toSatisfy(InvalidInputError.isInstance);
    expect(condition.terminated).toBe(true);
    await condition.reset();
    expect(condition.terminated).toBe(false);
    expect(await condition.check([said])).toBeUndefined();
    expect(await condition.check([stop])).toBeDefined();
  });
});

describe("TextMessageTermination", () => {
  it("fires on a text message, only from the given source if there is one", async () => {
    expect(await new TextMessageTermination().check([thought])).toBeUndefined();
    expect(await new TextMessageTermination().check([said])).toBeDefined();
    expect(await new TextMessageTermination("b").check([said])).toBeUndefined();
    expect(await new TextMessageTermination("a").check([said])).toBeDefined();
  });
});

describe("TokenUsageTermination", () => {
  const used = { ...thought, modelsUsage: { promptTokens: 10, completionTokens: 5 } };

  it.each([
    [{ maxTotalTokens: 30 }, 2],
    [{ maxPromptTokens: 11 }, 2],
    [{ maxCompletionTokens: 5 }, 1],
    [{ maxTotalTokens: 1000, maxPromptTokens: 30 }, 3],
  ])("adds up the usage of messages and events: %o fires at check %i", async (limits, checks) => {
    const condition = new TokenUsageTermination(limits);
    for (let check = 1; check < checks; check++) expect(await condition.check([used, said])).toBeUndefined();
    expect(await condition.check([used, said])).toBeDefined();
    await condition.reset();
    expect(await condition.check([said])).toBeUndefined();
  });

  it("requires at least one limit, greater than zero", () => {
    expect(() => new TokenUsageTermination({})).toThrow("They must set maxTotalTokens");
    expect(() => new TokenUsageTermination({ maxTotalTokens: 0 })).toThrow('"maxTotalTokens" is 0');
  });
});

describe("TimeoutTermination", () => {
  it("measures time from the last reset", async () => {
    vi.useFakeTimers();
    try {
      const condition = new TimeoutTermination(1000);
      vi.advanceTimersByTime(2000);
      await condition.reset();
      vi.advanceTimersByTime(999);
      expect(await condition.check([])).toBeUndefined();
      vi.advanceTimersByTime(1);
      expect(await condition.check([])).toBeDefined();
    } finally {
      vi.useRealTimers();
    }
    expect(() => new TimeoutTermination(0)).toThrow('"timeoutMs" is 0');
  });
});

describe("ExternalTermination", () => {
  it("fires once it is set, until it is reset", async () => {
    const condition = new ExternalTermination();
    expect(await condition.check([])).toBeUndefined();
    condition.set();
    expect(await condition.check([])).toBeDefined();
    await condition.reset();
    expect(await condition.check([])).toBeUndefined();
  });
});

describe("SourceMatchTermination", () => {
  it("fires after one of its sources has spoken", async () => {
    expect(await new SourceMatchTermination(["b", "c"]).check([said])).toBeUndefined();
    expect(await new SourceMatchTermination(["b", "a"]).check([said])).toBeDefined();
    expect(await new SourceMatchTermination("a").check([said])).toBeDefined();
  });
});

describe("FunctionCallTermination", () => {
  it("fires after the tool was called", async () => {
    const content = [{ callId: "1", name: "submit", content: "", isError: false }];
    const event = toolCallExecutionEvent({ source: "a", content });
    expect(await new FunctionCallTermination("search").check([event])).toBeUndefined();
    expect(await new FunctionCallTermination("submit").check([event])).toBeDefined();
  });
});

describe("HandoffTermination", () => {
  it("fires when the chat is handed to the target", async () => {
    const handoff = handoffMessage({ source: "a", content: "yours", target: "user" });
    expect(await new HandoffTermination("b").check([handoff])).toBeUndefined();
    expect(await new HandoffTermination("user").check([handoff])).toBeDefined();
  });
});

describe("FunctionalTermination", () => {
  it("calls the function, which may be async", async () => {
    expect(await new FunctionalTermination(() => false).check([said])).toBeUndefined();
    const condition = new FunctionalTermination(async (messages) => messages.length === 1);
    expect(await condition.check([said])).toBeDefined();
    expect(() => condition.dumpComponent()).toThrow(ComponentError);
  });
});
