import { renderToConsole } from "@fenced/agentchat";
import { type ChatTeamSettings, createChatTeam } from "./chat-team.ts";
import { dataFile } from "./default-task.ts";

/** What a chat needs. */
export interface ChatSettings extends ChatTeamSettings {
  readonly task: string;
  readonly signal: AbortSignal;
}

/**
 * Lets a coder and a runner speak in turn until the coder has the answer, and shows it as it happens.
 *
 * @returns whether there is an answer; without one the chat came to its limit.
 */
export async function runChat(settings: ChatSettings): Promise<boolean> {
  const { task, codeExecutor, signal } = settings;
  await codeExecutor.files.upload([dataFile]);
  const { team, answered } = createChatTeam(settings);
  await renderToConsole(team.runStream({ task, signal }));
  return answered.terminated;
}
