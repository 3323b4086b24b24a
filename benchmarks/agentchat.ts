/**
 * Measures the overhead of agents and teams over direct calls of the same replayed model answers and the same blocks, in the
 * same run.
 */
// needs: bash
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AssistantAgent, CodeExecutorAgent, RoundRobinGroupChat } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { RecordingChatCompletionClient, ReplayChatCompletionClient } from "@fenced/model-replay";
import { byTurns, report, timed } from "./measure.ts";
import { sayingModel } from "./support/saying-model.ts";

const rounds = 60;
const turns = 100;
const directory = await mkdtemp(join(tmpdir(), "fenced-bench-"));
const file = join(directory, "record.jsonl");
await using codeExecutor = new LocalCommandLineCodeExecutor();
await codeExecutor.start();

const code = ":";
const answer = `It is done so:\n\n\`\`\`sh\n${code}\n\`\`\``;
const recorder = new RecordingChatCompletionClient({ client: sayingModel(answer), file });
for (let call = 0; call < turns * 2; call += 1) await recorder.create([{ role: "user", content: "Do nothing." }]);
const replay = () => new ReplayChatCompletionClient({ file });

/** A model call and its block. */
async function byHand(): Promise<number> {
  const client = replay();
  return timed(async () => {
    await client.create([{ role: "user", content: "Do nothing." }]);
    const { exitCode, output } = await codeExecutor.executeCodeBlocks([{ language: "sh", code }]);
    if (exitCode !== 0) throw new Error(output);
  });
}

/** The same as two agents' turns. */
async function byTeam(): Promise<number> {
  const team = new RoundRobinGroupChat({
    participants: [
      new AssistantAgent({ name: "coder", modelClient: replay() }),
      new CodeExecutorAgent({ name: "runner", codeExecutor }),
    ],
    maxTurns: 2,
  });
  return timed(() => team.run({ task: "Do nothing." }));
}

async function manyCalls(): Promise<number> {
  const client = replay();
  return timed(async () => {
    for (let call = 0; call < turns * 2; call += 1) await client.create([{ role: "user", content: "Do nothing." }]);
  });
}

/** Two assistants that answer each other, `turns` times each: every request contains the whole conversation so far. */
async function longTalk(): Promise<number> {
  const modelClient = replay();
  const participants = ["one", "two"].map((name) => new AssistantAgent({ name, modelClient }));
  const team = new RoundRobinGroupChat({ participants, maxTurns: turns * 2 });
  return timed(() => team.run({ task: "Do nothing." }));
}

try {
  report("Agents and teams against direct calls", [
    {
      what: "a replayed answer and its sh block, as two turns of a team",
      unit: "ms",
      ...(await byTurns(rounds, byHand, byTeam)),
      goal: "< 1 ms over raw",
    },
    {
      what: "200 replayed answers, as 200 turns of two agents",
      unit: "ms",
      ...(await byTurns(10, manyCalls, longTalk)),
      goal: "",
    },
  ]);
} finally {
  await rm(directory, { recursive: true });
}
