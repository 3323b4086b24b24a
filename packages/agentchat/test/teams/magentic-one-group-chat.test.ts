import { InvalidInputError, type JsonObject, ModelClientError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import {
  AssistantAgent,
  MagenticOneGroupChat,
  type MagenticOneGroupChatOptions,
  messageToText,
  TextMentionTermination,
} from "../../src/index.ts";
import { Echo } from "../support/echo.ts";
import { ScriptedModel, type ScriptedAnswer } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

interface Judgement {
  readonly done?: boolean;
  readonly loop?: boolean;
  readonly progress?: boolean;
  readonly speaker?: string;
  readonly instruction?: string;
}

function ledger({
  done = false,
  loop = false,
  progress = true,
  speaker = "a",
  instruction = "Go on.",
}: Judgement): string {
  const given = { reason: "because", answer: true };
  return JSON.stringify({
    is_request_satisfied: { ...given, answer: done },
    is_in_loop: { ...given, answer: loop },
    is_progress_being_made: { ...given, answer: progress },
    next_speaker: { ...given, answer: speaker },
    instruction_or_question: { ...given, answer: instruction },
  });
}

function team(answers: readonly ScriptedAnswer[], options: Partial<MagenticOneGroupChatOptions> = {}) {
  const model = new ScriptedModel(answers);
  const participants = [new Echo("a"), new Echo("b")];
  return { chat: new MagenticOneGroupChat({ participants, modelClient: model, ...options }), model, participants };
}

/** What everybody said: source and text. */
function said(messages: readonly object[]): string[] {
  return messages.flatMap((message) =>
    "source" in message && "type" in message && message.type === "TextMessage" && "content" in message
      ? [`${String(message.source)}: ${String(message.content)}`]
      : [],
  );
}

describe("MagenticOneGroupChat", () => {
  it("plans, instructs one participant after another, and answers the task", async () => {
    const { chat, model } = team([
      "FACTS",
      "PLAN",
      ledger({ speaker: "b", instruction: "Find it." }),
      ledger({ speaker: "a", instruction: "Check it." }),
      ledger({ done: true }),
      "It is 42.",
    ]);
    const { messages, stopReason } = await chat.run({ task: "What is it?" });
    const [task, plan, ...rest] = said(messages);
    expect(task).toBe("user: What is it?");
    expect(plan).toMatch(/^MagenticOneGroupChat: .*What is it\?.*a: echo a\nb: echo b.*FACTS.*PLAN$/s);
    expect(rest).toEqual([
      "MagenticOneGroupChat: Find it.",
      // The first new message that an Echo hears is the plan.
      `b${plan?.slice("MagenticOneGroupChat".length)}`,
      "MagenticOneGroupChat: Check it.",
      `a${plan?.slice("MagenticOneGroupChat".length)}`,
      "MagenticOneGroupChat: It is 42.",
    ]);
    expect(stopReason).toBe("The task is solved: because");
    const [facts, planning, progress] = model.requests.map((request) => request.messages);
    expect(facts?.at(-1)?.content).toContain("What is it?");
    expect(planning?.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(progress?.map(({ role }) => role)).toEqual(["assistant", "user"]);
    expect(JSON.stringify(model.requests[2]?.options.jsonSchema)).toContain('"enum":["a","b"]');
  });

  it("makes a new plan when nothing moves, and lets everybody start over", async () => {
    const { chat, model, participants } = team(
      [
        "FACTS",
        "PLAN",
        ledger({ progress: true }),
        ledger({ progress: false }),
        ledger({ loop: true }),
        "NEW FACTS",
        "NEW PLAN",
        ledger({ speaker: "b" }),
        ledger({ done: true }),
        "Done.",
      ],
      { maxStalls: 2 },
    );
    const { messages } = await chat.run({ task: "Move." });
    const plans = said(messages).filter((line) => line.startsWith("MagenticOneGroupChat: We work"));
    expect(plans.map((line) => /NEW PLAN/.test(line))).toEqual([false, true]);
    expect(participants[0]?.last).toBe("");
    expect(participants[1]?.last).toContain("NEW PLAN");
    const update = model.requests[5]?.messages.at(-1)?.content;
    expect(update).toContain("FACTS");
    expect(model.requests[7]?.messages.map(({ role }) => role)).toEqual(["assistant", "user"]);
  });

  it("takes a stall back for each turn with progress", async () => {
    const { chat, model } = team(
      [
        "FACTS",
        "PLAN",
        ledger({ progress: false }),
        ledger({ progress: true }),
        ledger({ progress: false }),
        ledger({ done: true }),
        "Done.",
      ],
      { maxStalls: 2 },
    );
    await chat.run({ task: "Move." });
    expect(model.requests).toHaveLength(7);
  });

  it("answers with what it has at the limit of turns, even if a model plans forever", async () => {
    const limited = team(["F", "P", ledger({}), ledger({}), "As far as we got."], { maxTurns: 2 });
    const result = await limited.chat.run({ task: "Go." });
    expect(result.stopReason).toBe("The limit of 2 turns is reached.");
    expect(said(result.messages).at(-1)).toBe("MagenticOneGroupChat: As far as we got.");
    const stuck = ledger({ progress: false });
    const planning = team(["F", "P", stuck, "F", "P", stuck, "F", "P", "Nothing."], { maxTurns: 2, maxStalls: 1 });
    expect((await planning.chat.run({ task: "Go." })).stopReason).toBe("The limit of 2 turns is reached.");
  });

  it("tells the model what is wrong with its ledger", async () => {
    const { chat, model } = team(
      ["F", "P", "I think a should speak.", ledger({ speaker: "nobody" }), ledger({ done: true }), "Done."],
      {},
    );
    await chat.run({ task: "Go." });
    expect(model.requests[3]?.messages.at(-1)?.content).toContain("is not JSON");
    expect(model.requests[4]?.messages.at(-1)?.content).toContain("next_speaker");
    const hopeless = team(["F", "P", ...Array.from({ length: 10 }, () => "no")]);
    await expect(hopeless.chat.run({ task: "Go." })).rejects.toThrow(ModelClientError);
  });

  it("goes on where a failed question ended", async () => {
    const failing = (): Promise<string> => Promise.reject(new Error("overloaded"));
    const { chat } = team(["F", "P", failing, "F", "P", ledger({}), failing, ledger({ done: true }), "Done."]);
    await expect(chat.run({ task: "Go." })).rejects.toThrow("overloaded");
    await expect(chat.run()).rejects.toThrow("overloaded");
    const { messages } = await chat.run();
    expect(said(messages)).toEqual(["MagenticOneGroupChat: Done."]);
  });

  it("plans again if a participant could not start over", async () => {
    class Stubborn extends Echo {
      resets = 0;
      override async reset(): Promise<void> {
        this.resets += 1;
        if (this.resets === 1) throw new Error("cannot be reset");
        await super.reset();
      }
    }
    const modelClient = new ScriptedModel([
      "F1",
      "P1",
      ledger({}),
      "F2",
      "P2",
      ledger({}),
      ledger({ done: true }),
      "Done.",
    ]);
    const chat = new MagenticOneGroupChat({ participants: [new Stubborn("a")], modelClient });
    const before = await chat.saveState();
    await expect(chat.run({ task: "Go." })).rejects.toThrow("cannot be reset");
    expect((await chat.saveState())["manager"]).toMatchObject({ ledger: null, thread: [] });
    expect(before["manager"]).toMatchObject({ ledger: null, thread: [] });
    const [plan, instruction] = said((await chat.run()).messages);
    expect(plan).toContain("P2");
    expect(instruction).toBe("MagenticOneGroupChat: Go on.");
  });

  it("continues in another process, and starts a second task anew", async () => {
    const first = team(["F", "P", ledger({})], { terminationCondition: new TextMentionTermination("Go on.") });
    expect((await first.chat.run({ task: "One." })).stopReason).toContain("Go on.");
    const saved = throughJson(await first.chat.saveState());
    const second = team([ledger({ done: true }), "One is done.", "F2", "P2", ledger({ done: true }), "Two is done."]);
    await second.chat.loadState(saved);
    expect(said((await second.chat.run()).messages)).toEqual(["MagenticOneGroupChat: One is done."]);
    expect((await second.chat.run()).messages).toEqual([]);
    const { messages } = await second.chat.run({ task: "Two." });
    expect(said(messages).at(-1)).toBe("MagenticOneGroupChat: Two is done.");
    expect(second.model.requests.at(-1)?.messages.at(-1)?.content).not.toContain("One.");
  });

  it("adds a message in the middle of a task to the conversation", async () => {
    const { chat, model } = team(["F", "P", ledger({}), ledger({ done: true }), "Done."], {
      terminationCondition: new TextMentionTermination("Go on."),
    });
    await chat.run({ task: "One." });
    await chat.run({ task: "Hurry." });
    expect(JSON.stringify(model.requests[3]?.messages)).toContain("Hurry.");
  });

  it("shows the model's answers as events, if asked to", async () => {
    const { chat } = team(["F", "P", ledger({ done: true }), "Done."], { emitTeamEvents: true });
    const { messages } = await chat.run({ task: "Go." });
    expect(messages.filter(({ type }) => type === "SelectorEvent")).toHaveLength(4);
  });

  it("fills prompts with text that looks like a placeholder", async () => {
    const { chat, model } = team(["{plan} $& {team}", "P", ledger({ done: true }), "Done."]);
    await chat.run({ task: "Explain {facts} and $1." });
    expect(model.requests[0]?.messages.at(-1)?.content).toContain("Explain {facts} and $1.");
    const [plan] = model.requests[2]?.messages ?? [];
    expect(plan?.content).toContain("{plan} $& {team}");
  });

  it("rejects a run without a task, a forged state, and wrong options", async () => {
    const { chat } = team([]);
    await expect(chat.run()).rejects.toThrow("has no task");
    const state: JsonObject = { ...(await chat.saveState()), manager: { ledger: { task: "x" } } };
    await expect(chat.loadState(state)).rejects.toThrow(InvalidInputError);
    expect(() => team([], { maxStalls: 0 })).toThrow("maxStalls");
  });

  it("leads agents with models", async () => {
    const worker = new ScriptedModel(["I looked: it is blue."]);
    const modelClient = new ScriptedModel([
      "F",
      "P",
      ledger({ instruction: "Look." }),
      ledger({ done: true }),
      "Blue.",
    ]);
    const agent = new AssistantAgent({ name: "a", modelClient: worker, systemMessage: "" });
    const chat = new MagenticOneGroupChat({ participants: [agent], modelClient });
    const { messages } = await chat.run({ task: "Which colour?" });
    const last = messages.at(-1);
    expect(last !== undefined && "content" in last && last.type === "TextMessage" && messageToText(last)).toBe("Blue.");
    expect(worker.requests[0]?.messages.at(-1)?.content).toBe("Look.");
  });
});
