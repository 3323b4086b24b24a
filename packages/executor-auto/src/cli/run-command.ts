import { type CodeExecutor, inOwnWords } from "@fenced/core";
import { parseHostPattern } from "@fenced/core/network";
import { Command, InvalidArgumentError, Option } from "commander";
import { assertAble } from "../assert-able.ts";
import { importExecutor } from "../import-executor.ts";
import type { OpenExecutorOptions } from "../open-executor-options.ts";
import { openExecutor } from "../open-executor.ts";
import { findCode } from "./find-code.ts";
import { ownNames } from "./own-names.ts";
import { printRun } from "./print-run.ts";
import { readText } from "./read-text.ts";
import { say, UsageError } from "./usage-error.ts";

/** The options of `fenced run`. */
interface RunFlags {
  readonly executor: "auto" | "docker" | "os-sandbox" | "wasm" | "local";
  readonly image?: string;
  readonly network?: "none" | "open";
  readonly allow?: readonly string[];
  readonly workDir?: string;
  readonly timeoutMs?: number;
  readonly totalTimeoutMs?: number;
  readonly memoryBytes?: number;
  readonly env: Readonly<Record<string, string>>;
  readonly quiet: boolean;
}

const help = `
Output appears as it is printed. The first block that fails ends the run, and its exit code becomes the command's.
Other exit codes: 124: timed out; 125: no fence could be opened, or it failed; 2: invalid command line, or no code to run.

Examples:
  fenced run answer.md
  pbpaste | fenced run - --executor docker --image python:3.13-slim`;

/** `fenced run`. */
export function runCommand(signal: AbortSignal): Command {
  return new Command("run")
    .description("Runs the fenced code blocks of a Markdown file, or of a model's answer, in order.")
    .argument("<file>", "the Markdown file; - for standard input")
    .addOption(
      new Option("--executor <name>", "where the code runs; auto: behind the strongest fence; local: without a fence")
        .choices(["auto", "docker", "os-sandbox", "wasm", "local"])
        .default("auto"),
    )
    .option("--image <name>", "the image for Docker and Podman")
    .addOption(
      new Option("--network <kind>", "none (default), or open: everything that this machine can reach").choices([
        "none",
        "open",
      ]),
    )
    .addOption(
      new Option("--allow <host>", "a host that the code may reach: pypi.org, *.example.com:443; repeatable")
        .argParser(host)
        .conflicts("network"),
    )
    .option("--work-dir <directory>", "where the code runs (default: a temporary directory)")
    .option("--timeout-ms <number>", "time limit for each block, in milliseconds (default: 60000)", wholeFrom1)
    .option("--total-timeout-ms <number>", "time limit for all blocks together, in milliseconds", wholeFrom1)
    .option("--memory-bytes <number>", "memory limit for the code, in bytes", wholeFrom1)
    .option("--env <name=value>", "an environment variable for the code; repeatable", variable, {})
    .option("-q, --quiet", "do not print where the code runs, or which blocks are skipped", false)
    .addHelpText("after", help)
    .action(async (file: string, flags: RunFlags) => {
      process.exitCode = await run(file, flags, signal);
    });
}

async function run(file: string, flags: RunFlags, signal: AbortSignal): Promise<number> {
  refuseMisplaced(flags);
  const { blocks, languages, notes } = findCode(await readText(file, signal));
  if (blocks.length === 0) {
    throw new UsageError([`There is no code to run in ${file === "-" ? "standard input" : file}.`, ...notes].join(" "));
  }
  await using executor = await open(flags, languages, signal);
  for (const note of flags.quiet ? [] : notes) say(note);
  return await printRun(executor, blocks, signal);
}

async function open(flags: RunFlags, requiredLanguages: readonly string[], signal: AbortSignal): Promise<CodeExecutor> {
  const { executor: name, quiet, image, allow, network = allow && { allow }, ...given } = flags;
  if (name === "local") return openLocal(given, requiredLanguages, quiet);
  const options: OpenExecutorOptions = {
    ...given,
    ...(image === undefined ? {} : { image }),
    ...(network === undefined ? {} : { network }),
    requiredLanguages,
    signal,
  };
  const executor = await openExecutor(name, options);
  if (!quiet) say(inOwnWords({ message: executor.fence.reason }, ownNames));
  return executor;
}

async function openLocal(
  options: Pick<RunFlags, "workDir" | "timeoutMs" | "totalTimeoutMs" | "env">,
  requiredLanguages: readonly string[],
  quiet: boolean,
): Promise<CodeExecutor> {
  const { LocalCommandLineCodeExecutor } = await importExecutor(
    "@fenced/executor-local",
    () => import("@fenced/executor-local"),
  );
  // This command prints its own warning.
  process.removeAllListeners("warning");
  if (!quiet) say("Warning: the code runs on this machine without a fence. It can do everything that you can.");
  const executor = new LocalCommandLineCodeExecutor(options);
  try {
    await executor.start();
    assertAble(
      executor,
      { title: "this machine", newLanguage: "Install it, or use a fence that has it." },
      { requiredLanguages },
    );
    return executor;
  } catch (error) {
    await executor.stop();
    throw error;
  }
}

/** Rejects options that would be ignored. */
function refuseMisplaced({ executor, image, network, allow, memoryBytes }: RunFlags): void {
  if (image !== undefined && executor !== "auto" && executor !== "docker") {
    throw new UsageError("--image needs --executor docker or auto.");
  }
  const limits = { "--network": network, "--allow": allow, "--memory-bytes": memoryBytes };
  for (const [name, value] of Object.entries(limits)) {
    if (executor === "local" && value !== undefined) {
      throw new UsageError(`${name} needs a fence; --executor local has none.`);
    }
  }
}

function wholeFrom1(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number, at least 1.");
}

function host(text: string, before: readonly string[] | undefined): readonly string[] {
  const pattern = parseHostPattern(text);
  if ("problem" in pattern) throw new InvalidArgumentError(`It ${pattern.problem}.`);
  return [...(before ?? []), text];
}

function variable(text: string, before: Readonly<Record<string, string>>): Record<string, string> {
  const [, name, value] = /^([^=\0]+)=([^\0]*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("Write it as NAME=value.");
  return { ...before, [name]: value };
}
