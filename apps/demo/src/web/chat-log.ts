import type { AgentMessage } from "@fenced/agentchat";
import type { FileInfo } from "@fenced/core";

/** What the page shows, in order. */
export type LogItem =
  | {
      readonly type: "about";
      readonly model: string;
      readonly place: string;
      readonly task: string;
      readonly live: boolean;
    }
  | { readonly type: "running" }
  | { readonly type: "message"; readonly message: AgentMessage }
  | { readonly type: "decision"; readonly id: string; readonly approved: boolean }
  | { readonly type: "files"; readonly files: readonly FileInfo[] }
  | { readonly type: "pictures"; readonly paths: readonly string[] }
  | {
      readonly type: "ended";
      readonly reason: string;
      readonly failed: boolean;
      /** The identifier of the message with the coder's answer, if there is one. */
      readonly answer?: string;
    };

/** Everything that has happened, for pages that connect later or reconnect. */
export class ChatLog {
  readonly #items: LogItem[] = [];
  #waiting: (() => void)[] = [];

  add(item: LogItem): void {
    this.#items.push(item);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  /** Yields all items from a position on, and then new ones, until the signal aborts. */
  async *from(start: number, signal: AbortSignal): AsyncGenerator<LogItem, void, void> {
    for (let index = start; !signal.aborted;) {
      const item = this.#items[index];
      if (item === undefined) await this.#next(signal);
      else {
        index += 1;
        yield item;
      }
    }
  }

  #next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.push(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}
