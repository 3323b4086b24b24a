#!/usr/bin/env node
import { renderToConsole } from "@fenced/agentchat";
import { FencedError, inOwnWords, type ExecutorCapabilities } from "@fenced/core";
import { askApproval, assertTerminal } from "./ask-approval.ts";
import { createChatTeam } from "./chat-team.ts";
import { assertModel, chooseModel } from "./choose-model.ts";
import { dataFile, defaultTask } from "./default-task.ts";
import { DemoError, ownNames } from "./demo-error.ts";
import { parseOptions, type DemoOptions } from "./demo-options.ts";
import { Interruption, onInterruption } from "./interruption.ts";
import { openExecutor } from "./open-executor.ts";
import { runWeb } from "./web/run-web.ts";

async function runDemo(options: DemoOptions): Promise<void> {
  assertModel(options);
  if (options.approve && !options.web) assertTerminal();
  const signal = onInterruption();
  const open = await openExecutor(options.executor, options, signal);
  try {
    const { executor } = open;
    const place = open.reason ?? places[executor.capabilities.isolation];
    if (options.web) {
      await runWeb({ options, codeExecutor: executor, place, signal });
      return;
    }
    const { client, description, replayed } = await chooseModel(options, executor.capabilities.languages);
    const kept = options.executor === "jupyter" ? ` Charts are kept in the folder ${options.output}.` : "";
    console.log(`${place}${kept}\n${description}\n`);
    await executor.files.upload([dataFile]);
    const { team, answered } = createChatTeam({
      modelClient: client,
      codeExecutor: executor,
      maxMessages: options.maxMessages,
      approvalFunc: options.approve ? askApproval(replayed) : undefined,
    });
    await renderToConsole(team.runStream({ task: options.task ?? defaultTask(options), signal }));
    if (!answered.terminated) {
      throw new DemoError("The chat ended without an answer. Allow more messages with --max-messages N.", 1);
    }
  } finally {
    await open[Symbol.asyncDispose]();
  }
}

const places: Readonly<Record<ExecutorCapabilities["isolation"], string>> = {
  none: "The code runs on this computer, without a sandbox, in a temporary folder.",
  wasm: "The code runs on this computer, in an interpreter that cannot reach its files or the network.",
  "os-sandbox": "The code runs on this computer, in an OS sandbox.",
  container: "The code runs in a container.",
  remote: "The code runs on another machine.",
};

/** Prints what ended the demo, and returns the exit code. */
function report(error: unknown): number {
  if (isPipeClosed(error)) return 141;
  if (error instanceof Interruption || error instanceof DemoError) {
    // Exit code 2 means that nothing is on the screen yet, so no empty line is needed.
    console.error(error.exitCode === 2 ? error.message : `\n${error.message}`);
    return error.exitCode;
  }
  console.error(FencedError.isInstance(error) ? `\n${inOwnWords(error, ownNames)}` : error);
  return 1;
}

/** `npm run demo | head` closes the pipe: no one is left to tell. */
function isPipeClosed(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}

// The demo's first lines replace the local executor's warning.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (!("code" in warning) || warning.code !== "FENCED_LOCAL") console.error(`Warning: ${warning.message}`);
});

try {
  const options = parseOptions(process.argv.slice(2));
  if (options !== undefined) await runDemo(options);
} catch (error) {
  process.exitCode = report(error);
}
