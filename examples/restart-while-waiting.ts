// Restarts a web server while its chat waits for a person; the new process receives the answer.
// needs: bash
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
// #region server
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { CodeExecutorAgent, messageToText, RoundRobinGroupChat, UserProxyAgent } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

/** The chat of one user, with the person's answer, if there is one. */
function createTeam(codeExecutor: LocalCommandLineCodeExecutor, answer: string | undefined): RoundRobinGroupChat {
  // `undefined` means that there is no answer yet: the run ends and reports who it is waiting for.
  const person = new UserProxyAgent({ name: "person", inputFunc: () => answer });
  const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
  return new RoundRobinGroupChat({ participants: [person, runner], maxTurns: 2 });
}

/** Starts a chat on a POST to /task, and continues it with the answer from a POST to /answer. */
async function handle({ url }: IncomingMessage, body: string): Promise<string> {
  await using codeExecutor = new LocalCommandLineCodeExecutor();
  const team = createTeam(codeExecutor, url === "/answer" ? body : undefined);
  if (existsSync("chat.json")) await team.loadState(JSON.parse(await readFile("chat.json", "utf8")));
  const { messages, waitingFor } = await team.run(url === "/task" ? { task: body } : {});
  await writeFile("chat.json", JSON.stringify(await team.saveState()));
  return JSON.stringify({ waitingFor, said: messages.map(messageToText) });
}
// #endregion

const [, , chatDirectory] = process.argv;
if (process.send !== undefined && chatDirectory !== undefined) serve(chatDirectory);
else await askTwoServers();

function serve(directory: string): void {
  process.chdir(directory);
  const server = createServer((request, response) => {
    void text(request).then(async (body) => response.end(await handle(request, body)));
  });
  server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
}

async function askTwoServers(): Promise<void> {
  const cwd = process.cwd();
  enterTemporaryDirectory();
  const directory = process.cwd();
  const ask = async (path: string, body: string): Promise<Answer> => {
    const server = fork(import.meta.filename, [directory], { execArgv: process.execArgv, cwd });
    const [address] = (await once(server, "message")) as [{ port: number }];
    const response = await fetch(`http://127.0.0.1:${address.port}${path}`, { method: "POST", body });
    const answer = (await response.json()) as Answer;
    server.kill("SIGKILL");
    await once(server, "exit");
    return answer;
  };
  const first = await ask("/task", "What should run?");
  assert.deepEqual(first.waitingFor, [{ source: "person", reason: '"person" has not answered yet.' }]);
  const second = await ask("/answer", "```bash\necho it runs\n```");
  assert.equal(second.waitingFor, undefined);
  assert.equal(second.said.at(-1), "it runs\n");
}

interface Answer {
  readonly waitingFor?: unknown;
  readonly said: readonly string[];
}
