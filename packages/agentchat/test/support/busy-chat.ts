import * as z from "zod";
import {
  type AgentResponse,
  AssistantAgent,
  BaseChatAgent,
  CodeExecutorAgent,
  multiModalMessage,
  RoundRobinGroupChat,
  tool,
} from "../../src/index.ts";
import { python } from "./python.ts";
import { codeResult, ScriptedExecutor } from "./scripted-executor.ts";
import { call, ScriptedModel } from "./scripted-model.ts";

const picture = "data:image/png;base64,iVBORw0KGgo=";

class Painter extends BaseChatAgent {
  override async *onMessagesStream(): AsyncGenerator<AgentResponse> {
    const content = [
      { type: "text" as const, text: "Look:" },
      { type: "image" as const, url: picture },
    ];
    yield { chatMessage: multiModalMessage({ source: this.name, content }), innerMessages: [] };
  }
}

/** A chat with a bit of everything: streamed text, a thought, tools that work and fail, code with live output, a picture. */
export function busyChat(): RoundRobinGroupChat {
  const add = tool({
    name: "add",
    description: "",
    parameters: z.object({ a: z.number() }),
    execute: ({ a }) => {
      if (a === 0) throw new Error("zero");
      return a + 1;
    },
  });
  const calls = [call("add", { a: 1 }, "c1"), call("add", { a: 0 }, "c2"), call("add", "not json", "c3")];
  const modelClient = new ScriptedModel([
    { content: calls, thought: "I add." },
    { content: "It is 2.", thought: "hm" },
  ]);
  const helper = new AssistantAgent({
    name: "helper",
    modelClient,
    tools: [add],
    reflectOnToolUse: true,
    modelClientStream: true,
  });
  const codeExecutor = new ScriptedExecutor([codeResult({ output: "7\n" })]);
  codeExecutor.live = ["7\n"];
  const coder = new CodeExecutorAgent({
    name: "coder",
    codeExecutor,
    modelClient: new ScriptedModel([python("print(7)"), "Seven it is."]),
    modelClientStream: true,
  });
  return new RoundRobinGroupChat({
    participants: [helper, coder, new Painter({ name: "painter", description: "" })],
    maxTurns: 3,
  });
}
