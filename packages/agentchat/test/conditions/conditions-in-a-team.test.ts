import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  AssistantAgent,
  FunctionCallTermination,
  handoffMessage,
  HandoffTermination,
  MaxMessageTermination,
  multiModalMessage,
  RoundRobinGroupChat,
  SourceMatchTermination,
  type TerminationCondition,
  TextMentionTermination,
  TextMessageTermination,
  TokenUsageTermination,
  tool,
} from "../../src/index.ts";
import { call, type ScriptedAnswer, ScriptedModel } from "../support/scripted-model.ts";

const submit = tool({ name: "submit", description: "", parameters: z.object({}), execute: () => "taken" });

/** A planner that follows the script, and a critic that says "fine" each time. */
function pair(
  script: readonly ScriptedAnswer[],
  terminationCondition: TerminationCondition,
  maxTurns = 6,
): RoundRobinGroupChat {
  const planner = new AssistantAgent({
    name: "planner",
    modelClient: new ScriptedModel(script),
    tools: [submit],
    handoffs: ["user"],
  });
  const critic = new AssistantAgent({ name: "critic", modelClient: new ScriptedModel(["fine", "fine", "fine"]) });
  return new RoundRobinGroupChat({ participants: [planner, critic], terminationCondition, maxTurns });
}

describe("conditions in a team", () => {
  it.each<[string, TerminationCondition, number, string]>([
    ["MaxMessageTermination", new MaxMessageTermination(3), 5, "The limit of 3 messages is reached (3)."],
    [
      "MaxMessageTermination with events",
      new MaxMessageTermination(3, { includeEvents: true }),
      4,
      "The limit of 3 messages is reached (4).",
    ],
    ["TextMentionTermination", new TextMentionTermination("fine"), 5, '"critic" mentioned "fine".'],
    ["TextMessageTermination", new TextMessageTermination("critic"), 5, '"critic" sent a text message.'],
    ["SourceMatchTermination", new SourceMatchTermination("planner"), 4, '"planner" has spoken.'],
    ["FunctionCallTermination", new FunctionCallTermination("submit"), 4, 'The tool "submit" was called.'],
    [
      "TokenUsageTermination",
      new TokenUsageTermination({ maxTotalTokens: 31 }),
      6,
      "The token limit is reached: 30 in requests, 15 in answers.",
    ],
    [
      "and",
      new FunctionCallTermination("submit").and(new TextMessageTermination("planner")),
      6,
      'The tool "submit" was called. "planner" sent a text message.',
    ],
  ])("%s ends the chat after the turn that meets it", async (_, condition, messages, reason) => {
    // The planner's first turn is two events and a summary.
    const script = [[call("submit")], "done", "done"];
    const team = pair(script, condition);
    const result = await team.run({ task: "go" });
    expect(result.stopReason).toBe(reason);
    expect(result.messages).toHaveLength(messages);
    expect(condition.terminated).toBe(true);
  });

  it("HandoffTermination hands the chat to a person, who hands it back with the next task", async () => {
    const team = pair([[call("transfer_to_user")], "thanks"], new HandoffTermination("user"), 2);
    const first = await team.run({ task: "go" });
    expect(first.stopReason).toBe('"planner" handed the chat to "user".');
    expect(first.messages.at(-1)).toMatchObject({ type: "HandoffMessage", target: "user" });
    const answer = handoffMessage({ source: "user", target: "planner", content: "Blue." });
    const second = await team.run({ task: answer });
    expect(second.messages[0]).toEqual(answer);
    expect(second.messages.map(({ source }) => source)).toEqual(["user", "critic", "planner"]);
    expect(second.stopReason).toBe("The limit of 2 turns is reached.");
  });
});

describe("TextMentionTermination", () => {
  it("finds the text in a message with images", async () => {
    const content = [
      { type: "image", url: "data:image/png;base64,AA" },
      { type: "text", text: "That is it. TERMINATE" },
    ] as const;
    const message = multiModalMessage({ source: "a", content });
    expect(await new TextMentionTermination("TERMINATE").check([message])).toBeDefined();
  });
});
