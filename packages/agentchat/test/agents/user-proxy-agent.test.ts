import { join } from "node:path";
import { ComponentError, InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { describe, expect, it } from "vitest";
import { handoffMessage, textMessage, UserProxyAgent } from "../../src/index.ts";
import { collect, types } from "../support/collect.ts";
import { talk, talkInTerminal, type Told } from "../support/in-terminal.ts";

const program = await bundledCommand(join(import.meta.dirname, "..", "fixtures", "ask-user.ts"));

async function askUser(input: string, ...args: readonly string[]): Promise<Told> {
  return talk([...program, ...args], (child) => child.stdin.end(input));
}

async function askInTerminal(keys: string, ...args: readonly string[]): Promise<Told> {
  return talkInTerminal([...program, ...args], { keys });
}

describe("UserProxyAgent", () => {
  it("asks the person and answers with their input", async () => {
    const prompts: string[] = [];
    const agent = new UserProxyAgent({
      name: "person",
      inputFunc: async (prompt) => {
        prompts.push(prompt);
        return "yes";
      },
    });
    const items = await collect(agent.onMessagesStream([textMessage({ source: "a", content: "ok?" })]));
    expect(types(items)).toEqual(["UserInputRequestedEvent", "end"]);
    expect(items[1]).toMatchObject({
      chatMessage: { type: "TextMessage", source: "person", content: "yes" },
      innerMessages: [{ type: "UserInputRequestedEvent", source: "person" }],
    });
    expect(prompts).toEqual(["person, your answer: "]);
  });

  it("hands the chat back to the agent that handed it over", async () => {
    const agent = new UserProxyAgent({ name: "person", inputFunc: () => "go on" });
    const mine = handoffMessage({ source: "planner", content: "yours", target: "person" });
    expect((await agent.onMessages([mine])).chatMessage).toMatchObject({ type: "HandoffMessage", target: "planner" });
    const other = handoffMessage({ source: "planner", content: "yours", target: "critic" });
    expect((await agent.onMessages([other])).chatMessage.type).toBe("TextMessage");
  });

  it("stops asking after an abort, even if the function ignores it", async () => {
    const controller = new AbortController();
    const agent = new UserProxyAgent({
      name: "person",
      inputFunc: () => {
        controller.abort("stop");
        return new Promise(() => {});
      },
    });
    await expect(agent.onMessages([], { signal: controller.signal })).rejects.toBe("stop");
  });

  it("cannot be dumped with an inputFunc, and rejects an invalid name", () => {
    const agent = new UserProxyAgent({ name: "person", inputFunc: () => "" });
    expect(() => agent.dumpComponent()).toThrow(ComponentError);
    expect(() => new UserProxyAgent({ name: "no name" })).toThrow(InvalidInputError);
  });

  it("reads a line from a pipe and lets the program end", async () => {
    expect(await askUser("blue\n")).toMatchObject({ output: "person, your answer: <blue>\n", exitCode: 0 });
  });

  it("keeps unread lines of a pipe for the next question", async () => {
    const output = ["one", "zwei €", ""].map((answer) => `person, your answer: <${answer}>\n`).join("");
    expect(await askUser("one\r\nzwei €\n\nfour", "3")).toMatchObject({ output, exitCode: 0 });
    expect((await askUser("one\ntwo", "2")).output).toContain("<two>");
  });

  it("fails if the input ends", async () => {
    for (const [input, times] of [
      ["", "1"],
      ["one\n", "2"],
      ["one", "2"],
    ] as const) {
      const { output, exitCode } = await askUser(input, times);
      expect(output).toContain("Standard input ended before there was an answer.");
      expect(exitCode).toBe(1);
    }
  });

  it("stops asking after an abort, and lets the program end", async () => {
    const child = talk([...program, "1", "abort"], ({ stdout, pid = 0 }) => {
      stdout.once("data", () => process.kill(pid, "SIGINT"));
    });
    expect(await child).toMatchObject({ output: expect.stringContaining("Error: interrupted"), exitCode: 1 });
  });
});

describe("UserProxyAgent in a terminal", needs("python3"), () => {
  it("reads a line", async () => {
    const { output, exitCode } = await askInTerminal("blue\r");
    expect(output).toContain("<blue>");
    expect(exitCode).toBe(0);
  });

  it("fails if the input ends", async () => {
    const { output, exitCode } = await askInTerminal("\u0004");
    expect(output).toContain("Standard input ended before there was an answer.");
    expect(exitCode).toBe(1);
  });

  it("leaves Ctrl+C to the program", async () => {
    expect((await askInTerminal("\u0003", "1", "abort")).output).toContain("Error: interrupted");
    const { output, exitCode } = await askInTerminal("\u0003");
    expect(output).not.toContain("ended before there was an answer");
    // What Python reports for a program that SIGINT killed.
    expect(exitCode).toBe(254);
  });
});
