import { once } from "node:events";
import type { CodeExecutor } from "@fenced/core";
import { chooseModel } from "../choose-model.ts";
import { defaultTask } from "../default-task.ts";
import type { DemoOptions } from "../demo-options.ts";
import { WebChat } from "./web-chat.ts";
import { startWebServer } from "./web-server.ts";

/** Settings of the page. */
export interface WebSettings {
  readonly options: DemoOptions;
  readonly codeExecutor: CodeExecutor;
  /** Where the code runs, as a sentence. */
  readonly place: string;
  readonly signal: AbortSignal;
}

/** Serves the page until the signal aborts. */
export async function runWeb({ options, codeExecutor, place, signal }: WebSettings): Promise<void> {
  const chat = await WebChat.open({
    codeExecutor,
    chooseModel: () => chooseModel(options, codeExecutor.capabilities.languages),
    maxMessages: options.maxMessages,
    approve: options.approve,
    task: options.task ?? defaultTask(options),
    place,
    signal,
  });
  await using server = await startWebServer(chat, codeExecutor.files, options.port);
  console.log(`Open ${server.url}\nThe address contains a secret token: do not share it. Ctrl+C ends the demo.`);
  if (!signal.aborted) await once(signal, "abort");
  await chat.stop();
  signal.throwIfAborted();
}
