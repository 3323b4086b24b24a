import { renderToConsole } from "@fenced/agentchat";
import { type ChatTeamSettings, createChatTeam } from "./chat-team.ts";
import { dataFile } from "./default-task.ts";

/** Settings of a chat. */
export interface ChatSettings extends ChatTeamSettings {
  readonly task: string;
  readonly signal: AbortSignal;
}

/**
 * Runs a chat of a coder and a runner until the coder has the answer, and shows it live.
 *
 * @returns whether there is an answer; without one, the chat reached its limit.
 */
export async function runChat(settings: ChatSettings): Promise<boolean> {
  const { task, codeExecutor, signal } = settings;
  await codeExecutor.files.upload([dataFile]);
  const { team, answered } = createChatTeam(settings);
  await renderToConsole(team.runStream({ task, signal }));
  return answered.terminated;
}
