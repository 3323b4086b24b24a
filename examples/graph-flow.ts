// Runs agents in the order of a graph: two review in parallel until the editor agrees. The models are recordings.
import assert from "node:assert/strict";
// #region graph
import { join } from "node:path";
import { AssistantAgent, DiGraphBuilder, GraphFlow, messageToText } from "@fenced/agentchat";
import { ReplayChatCompletionClient } from "@fenced/model-replay";
// #endregion

// #region graph
const model = (name: string) =>
  new ReplayChatCompletionClient({ file: join(import.meta.dirname, "records", `graph-flow-${name}.jsonl`) });
const writer = new AssistantAgent({ name: "writer", modelClient: model("writer") });
const facts = new AssistantAgent({ name: "facts", modelClient: model("facts") });
const style = new AssistantAgent({ name: "style", modelClient: model("style") });
const editor = new AssistantAgent({ name: "editor", modelClient: model("editor") });
const printer = new AssistantAgent({ name: "printer", modelClient: model("printer") });

const builder = new DiGraphBuilder().addNode(writer).addNode(facts).addNode(style).addNode(editor).addNode(printer);
builder.addEdge(writer, facts).addEdge(writer, style); // both review at the same time
builder.addEdge(facts, editor).addEdge(style, editor); // the editor waits for both
builder.addConditionalEdges(editor, { REVISE: writer, APPROVED: printer }).setEntryPoint(writer);

const team = new GraphFlow({ participants: builder.getParticipants(), graph: builder.build(), maxTurns: 12 });
const { messages, stopReason } = await team.run({ task: "One sentence about why the sky is blue." });
// #endregion

const order = messages.map(({ source }) => source).join(" ");
assert.match(order, /^user writer (facts style|style facts) editor writer (facts style|style facts) editor printer$/);
assert.equal(stopReason, "The graph has reached its end.");
assert.match(messages.slice(-1).map(messageToText).join(), /scatter/);
