#!/usr/bin/env node
import { FencedError, type ExecutorCapabilities } from "@fenced/core";
import { askApproval, assertTerminal } from "./ask-approval.ts";
import { assertModel, chooseModel } from "./choose-model.ts";
import { defaultTask } from "./default-task.ts";
import { DemoError } from "./demo-error.ts";
import { parseOptions, type DemoOptions } from "./demo-options.ts";
import { Interruption, onInterruption } from "./interruption.ts";
import { openExecutor } from "./open-executor.ts";
import { runChat } from "./run-chat.ts";

async function runDemo(options: DemoOptions): Promise<void> {
  assertModel(options);
  if (options.approve) assertTerminal();
  const signal = onInterruption();
  const open = await openExecutor(options.executor, options, signal);
  try {
    const { executor } = open;
    const { client, description, replayed } = await chooseModel(options, executor.capabilities.languages);
    const kept = options.executor === "jupyter" ? ` Charts are kept in the folder ${options.output}.` : "";
    console.log(`${description}\n${places[executor.capabilities.isolation]}${kept}\n`);
    const answered = await runChat({
      task: options.task ?? defaultTask(options.executor),
      modelClient: client,
      codeExecutor: executor,
      maxMessages: options.maxMessages,
      approvalFunc: options.approve ? askApproval(replayed) : undefined,
      signal,
    });
    if (!answered) throw new DemoError("The chat ended without an answer. Give it more with --max-messages N.", 1);
  } finally {
    await open[Symbol.asyncDispose]();
  }
}

const places: Readonly<Record<ExecutorCapabilities["isolation"], string>> = {
  none: "The code runs on this computer, without a sandbox, in a temporary folder.",
  "os-sandbox": "The code runs on this computer, in a sandbox of the operating system.",
  container: "The code runs in a container.",
  remote: "The code runs on another machine.",
};

/** Tells the user what ended the demo, and the shell how. */
function report(error: unknown): number {
  if (error instanceof Interruption || error instanceof DemoError) {
    // With exit code 2 nothing was shown yet that the message should keep its distance from.
    console.error(error.exitCode === 2 ? error.message : `\n${error.message}`);
    return error.exitCode;
  }
  console.error(FencedError.isInstance(error) ? `\n${error.message}` : error);
  return 1;
}

// What the local executor warns of stands in the demo's own words in its first lines.
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
