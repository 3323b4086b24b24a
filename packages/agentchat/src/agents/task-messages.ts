import { InvalidInputError } from "@fenced/core";
import type { ChatMessage } from "../messages/chat-message.ts";
import { checkChatMessage } from "../messages/check-message.ts";
import { textMessage } from "../messages/create-message.ts";
import type { Task } from "./chat-agent.ts";

/**
 * The messages of a task; none if there is no task.
 *
 * @throws InvalidInputError if it is neither text nor messages, or an empty list.
 */
export function taskMessages(task: Task | undefined): readonly ChatMessage[] {
  if (task === undefined) return [];
  if (typeof task === "string") return [textMessage({ source: "user", content: task })];
  if (!isMessageList(task)) return [checkChatMessage(task, "The task")];
  if (task.length === 0) {
    throw new InvalidInputError("The task is an empty list", {
      remedy: "Pass at least one message, or leave the task out to continue where the last run stopped.",
    });
  }
  return Array.from(task, (message, index) => checkChatMessage(message, `task[${index}]`));
}

function isMessageList(task: ChatMessage | readonly ChatMessage[]): task is readonly ChatMessage[] {
  return Array.isArray(task);
}
