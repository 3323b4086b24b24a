#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { FencedError, inOwnWords, InvalidInputError } from "@fenced/core";
import { Command, CommanderError } from "commander";
import { z } from "zod";
import { doctorCommand } from "./cli/doctor-command.ts";
import { Interruption, onInterruption } from "./cli/interruption.ts";
import { ownNames } from "./cli/own-names.ts";
import { runCommand } from "./cli/run-command.ts";
import { say, UsageError } from "./cli/usage-error.ts";
import { verifyRecordCommand } from "./cli/verify-record-command.ts";

/** The exit code when the environment fails rather than the program, as with `docker run`. */
const brokenExitCode = 125;

const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const { version } = z.object({ version: z.string() }).parse(manifest);
const signal = onInterruption();
const program = new Command("fenced")
  .description("Runs code written by agents, behind the strongest fence that this machine has.")
  .version(version)
  .addCommand(runCommand(signal))
  .addCommand(doctorCommand(signal))
  .addCommand(verifyRecordCommand())
  .configureOutput({ writeErr: () => undefined })
  .exitOverride();
// Subcommands created elsewhere do not inherit these settings.
for (const command of program.commands) command.copyInheritedSettings(program);

try {
  await program.parseAsync();
} catch (error) {
  // Whatever else broke, the interruption was the cause.
  process.exitCode = report(signal.aborted ? signal.reason : error);
}

/** The command that the mistake is in, if there is one. */
function commandOf({ code }: CommanderError): string {
  const [, , first] = process.argv;
  return first === undefined || first.startsWith("-") || code === "commander.unknownCommand" ? "" : `${first} `;
}

/** Prints what went wrong, and returns the exit code. */
function report(error: unknown): number {
  if (error instanceof Interruption) return error.exitCode;
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    say(
      error.code === "commander.help"
        ? program.helpInformation()
        : `${error.message.replace(/^error: /, "")}\nAll options: fenced ${commandOf(error)}--help`,
    );
    return 2;
  }
  if (error instanceof UsageError) {
    say(error.message);
    return 2;
  }
  say(FencedError.isInstance(error) ? inOwnWords(error, ownNames) : inspect(error));
  return InvalidInputError.isInstance(error) ? 2 : brokenExitCode;
}
