import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import {
  type AgentMessage,
  AssistantAgent,
  BufferedChatCompletionContext,
  isTaskResult,
  MaxMessageTermination,
  multiModalMessage,
  SelectorGroupChat,
  type SelectorGroupChatOptions,
  structuredMessage,
  type Task,
  TextMentionTermination,
  textMessage,
} from "../../src/index.ts";
import { collect } from "../support/collect.ts";
import { Echo, sources } from "../support/echo.ts";
import { ScriptedModel, type ScriptedAnswer } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

const task = "Write a program that prints 'Hello, world!'";

interface Chat {
  readonly team: SelectorGroupChat;
  readonly model: ScriptedModel;
}

function chat(
  agents: readonly Echo[],
  answers: readonly ScriptedAnswer[],
  options: Partial<SelectorGroupChatOptions> = {},
): Chat {
  const model = new ScriptedModel(answers);
  return { team: new SelectorGroupChat({ participants: agents, modelClient: model, ...options }), model };
}

function echoes(...names: readonly string[]): Echo[] {
  return names.map((name) => new Echo(name));
}

describe("SelectorGroupChat", () => {
  it("lets a model choose who speaks next", async () => {
    const agents = [new Echo("agent1", { stopAt: 2 }), ...echoes("agent2", "agent3")];
    const terminationCondition = new TextMentionTermination("TERMINATE");
    const answers = ["agent3", "agent2", "agent1", "agent2", "agent1"];
    const { team, model } = chat(agents, answers, { terminationCondition });
    const items = await collect(team.runStream({ task }));
    const result = items.find(isTaskResult);
    expect(sources(result?.messages ?? [])).toEqual(["user", "agent3", "agent2", "agent1", "agent2", "agent1"]);
    expect(items.slice(0, -1)).toEqual(result?.messages);
    expect(result?.stopReason).toContain("TERMINATE");
    const asked = model.requests[1]?.messages[0]?.content;
    expect(asked).toContain("agent1: echo agent1\nagent2: echo agent2");
    expect(asked).toContain('["agent1","agent2"]');
    expect(asked).toContain(`user: ${task}\n\nagent3: ${task}`);
  });

  it.each<[string, Task]>([
    ["text", task],
    ["a message", [textMessage({ source: "user", content: task })]],
    ["a picture", [multiModalMessage({ source: "user", content: [{ type: "text", text: task }] })]],
    ["data", [structuredMessage({ source: "user", content: { task, data: ["a", "b"] } })]],
  ])("saves and loads its state after a task of %s", async (_, given) => {
    const make = (answers: readonly string[]): SelectorGroupChat => {
      const modelClient = new ScriptedModel(answers);
      return new SelectorGroupChat({
        participants: ["agent1", "agent2"].map((name) => new AssistantAgent({ name, modelClient })),
        modelClient,
        terminationCondition: new TextMentionTermination("TERMINATE"),
      });
    };
    const first = make(["agent1", "No facts", "No plan", "print('Hello')", "TERMINATE"]);
    await first.run({ task: given });
    const state = throughJson(await first.saveState());
    const second = make(["go on", "TERMINATE"]);
    await second.loadState(state);
    expect(await second.saveState()).toEqual(state);
    // The last speaker was restored as well, so it is the other agent's turn.
    expect(sources((await second.run()).messages)[0]).toBe("agent1");
  });

  it("asks the model only once if two agents take turns", async () => {
    const { team, model } = chat([new Echo("agent1", { stopAt: 2 }), new Echo("agent2")], ["agent2"], {
      terminationCondition: new TextMentionTermination("TERMINATE"),
    });
    expect(sources((await team.run({ task })).messages)).toEqual(["user", "agent2", "agent1", "agent2", "agent1"]);
    expect(model.requests).toHaveLength(1);
  });

  it("lets an agent speak twice in a row with allowRepeatedSpeaker", async () => {
    const { team } = chat([new Echo("agent1", { stopAt: 1 }), new Echo("agent2")], ["agent2", "agent2", "agent1"], {
      terminationCondition: new TextMentionTermination("TERMINATE"),
      allowRepeatedSpeaker: true,
    });
    expect(sources((await team.run({ task })).messages)).toEqual(["user", "agent2", "agent2", "agent1"]);
  });

  it("tells the model what is wrong with its answer", async () => {
    const { team, model } = chat(echoes("agent1", "agent2", "agent3"), ["agent2, agent3", "agent9", "agent2"], {
      maxTurns: 1,
    });
    expect(sources((await team.run({ task })).messages)).toEqual(["user", "agent2"]);
    const said = model.requests[2]?.messages.map(({ content }) => content);
    expect(said?.slice(1)).toEqual([
      "agent2, agent3",
      expect.stringContaining("Exactly one name is needed"),
      "agent9",
      expect.stringContaining("not the name of a participant"),
    ]);
  });

  it("falls back to the first participant after three wrong answers", async () => {
    const answers = ["agent2, agent3", "agent5", "agent3, agent1"];
    const { team } = chat(echoes("agent1", "agent2", "agent3"), answers, { maxTurns: 1 });
    expect(sources((await team.run({ task })).messages)).toEqual(["user", "agent1"]);
  });

  it("falls back to another speaker after three wrong answers", async () => {
    const answers = ["agent2", "agent2", "agent2", "agent2"];
    const { team, model } = chat(echoes("agent1", "agent2", "agent3"), answers, { maxTurns: 2 });
    expect(sources((await team.run({ task })).messages)).toEqual(["user", "agent2", "agent1"]);
    expect(model.requests[2]?.messages.at(-1)?.content).toContain("may not speak again");
  });

  it("asks up to maxSelectorAttempts times", async () => {
    const { team, model } = chat(echoes("agent1", "agent2"), ["nobody"], { maxSelectorAttempts: 1, maxTurns: 1 });
    expect(sources((await team.run({ task })).messages)).toEqual(["user", "agent1"]);
    expect(model.requests).toHaveLength(1);
  });

  it.each(["Story writer", String.raw`Story\_writer`, "**Story_writer**.", "(Story_writer)"])(
    "understands the name in %s",
    async (answer) => {
      const { team } = chat(echoes("critic", "Story_writer"), [answer], { maxTurns: 1 });
      expect(sources((await team.run({ task })).messages)).toEqual(["user", "Story_writer"]);
    },
  );

  it("calls selectorFunc first, and asks the model if that returns nothing", async () => {
    const next: Readonly<Record<string, string | undefined>> = { agent1: "agent2", agent3: "agent4" };
    const { team } = chat(echoes("agent1", "agent2", "agent3", "agent4"), ["agent3"], {
      selectorFunc: async (history) => {
        const last = history.at(-1)?.source ?? "";
        return last === "agent2" ? null : (next[last] ?? "agent1");
      },
      terminationCondition: new MaxMessageTermination(6),
    });
    const expected = ["user", "agent1", "agent2", "agent3", "agent4", "agent1"];
    expect(sources((await team.run({ task })).messages)).toEqual(expected);
  });

  it("chooses among the candidates from candidateFunc", async () => {
    const next: Readonly<Record<string, string[]>> = {
      agent1: ["agent2"],
      agent2: ["agent2", "agent3"],
      agent3: ["agent4"],
    };
    const { team, model } = chat(echoes("agent1", "agent2", "agent3", "agent4"), ["agent3"], {
      candidateFunc: (history) => next[history.at(-1)?.source ?? ""] ?? ["agent1"],
      terminationCondition: new MaxMessageTermination(6),
    });
    const expected = ["user", "agent1", "agent2", "agent3", "agent4", "agent1"];
    expect(sources((await team.run({ task })).messages)).toEqual(expected);
    expect(model.requests).toHaveLength(1);
  });

  it.each<[string, Partial<SelectorGroupChatOptions>]>([
    ["selectorFunc", { selectorFunc: () => "nobody" }],
    ["candidateFunc", { candidateFunc: () => ["agent1", "nobody"] }],
    ["candidateFunc", { candidateFunc: () => [] }],
  ])("rejects a %s that names no participant", async (name, options) => {
    const { team } = chat(echoes("agent1", "agent2"), [], options);
    await expect(team.run({ task })).rejects.toThrow(name);
  });

  it("needs two participants", () => {
    expect(() => chat(echoes("agent1"), [])).toThrow(InvalidInputError);
  });

  it("shows the model only the messages in modelContext", async () => {
    const { team, model } = chat(echoes("agent1", "agent2", "agent3"), ["agent2", "agent3", "agent1"], {
      modelContext: new BufferedChatCompletionContext(1),
      selectorPrompt: "{roles} {participants} {history}",
      maxTurns: 3,
    });
    await team.run({ task: "say {roles} $&" });
    expect(model.requests[2]?.messages[0]?.content).toMatch(/\] agent3: say \{roles\} \$&$/);
  });

  it("emits its selection events if emitTeamEvents is set", async () => {
    const { team } = chat(echoes("agent1", "agent2"), ["agent2, I think"], {
      emitTeamEvents: true,
      modelClientStream: true,
      maxTurns: 2,
    });
    const items: AgentMessage[] = [];
    for await (const item of team.runStream({ task })) if (!isTaskResult(item)) items.push(item);
    const events = items.filter(({ source }) => source === "SelectorGroupChat");
    expect(events.map(({ type }) => type)).toEqual([
      "ModelClientStreamingChunkEvent",
      "ModelClientStreamingChunkEvent",
      "ModelClientStreamingChunkEvent",
      "SelectorEvent",
      "SelectSpeakerEvent",
      "SelectSpeakerEvent",
    ]);
    expect(events[4]).toMatchObject({ content: ["agent2"] });
  });

  it.each<[string, string, Partial<SelectorGroupChatOptions>]>([
    ["the last speaker", "alice", {}],
    ["nobody", "nobody", {}],
    ["someone who is not among the candidates", "alice", { candidateFunc: () => ["bob", "cy"] }],
  ])("never falls back to an excluded speaker if the model only names %s", async (_, answer, options) => {
    const answers = Array.from({ length: 12 }, () => answer);
    const { team } = chat(echoes("alice", "bob", "cy"), answers, { maxTurns: 4, ...options });
    const said = sources((await team.run({ task })).messages).slice(1);
    expect(said).toHaveLength(4);
    expect(said.filter((name, index) => options.candidateFunc === undefined && name === said[index - 1])).toEqual([]);
    expect(said.filter((name) => options.candidateFunc !== undefined && name === "alice")).toEqual([]);
  });

  it.each([
    ["analyst-2", "analyst-2"],
    ["I choose **analyst**.", "analyst"],
    ["analyst data", "analyst_data"],
    ["<think>analyst or analyst-2? The writer.</think>\nwriter", "writer"],
    ["First analyst, I thought.\n</think>\n\nwriter", "writer"],
  ])("understands %j", async (answer, speaker) => {
    const { team } = chat(echoes("analyst", "analyst-2", "analyst_data", "writer"), [answer], {
      maxTurns: 1,
      maxSelectorAttempts: 1,
      allowRepeatedSpeaker: true,
    });
    expect(sources((await team.run({ task })).messages).at(-1)).toBe(speaker);
  });
});
