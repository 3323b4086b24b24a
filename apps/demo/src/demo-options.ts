import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { DemoError } from "./demo-error.ts";
import { executorNames, type ExecutorName } from "./open-executor.ts";

/** The command line's options. */
export interface DemoOptions {
  /** Default: the demo's own. */
  readonly task?: string;
  readonly executor: ExecutorName;
  readonly image?: string;
  readonly host?: string;
  /** The folder in which charts are kept. */
  readonly output: string;
  readonly model?: string;
  readonly maxMessages: number;
  readonly record?: string;
  readonly replay?: string;
  readonly approve: boolean;
  /** Show the chat on a page instead of in the terminal. */
  readonly web: boolean;
  /** The page's port; 0: any free one. */
  readonly port: number;
}

/** Options that only some executors have. */
const executorOptions: Readonly<Record<string, readonly ExecutorName[]>> = {
  image: ["docker", "auto"],
  host: ["ssh"],
  output: ["jupyter"],
};

const environmentHelp = `
Environment:
  OPENAI_API_KEY   a key; a live model then writes the code, instead of the recording
  OPENAI_BASE_URL  any service with OpenAI's protocol, e.g. http://localhost:11434/v1
  OPENAI_MODEL     the model, unless --model names one`;

/** @returns the options, or undefined if help was printed instead. */
export function parseOptions(args: readonly string[]): DemoOptions | undefined {
  const command = createCommand();
  try {
    command.parse(args, { from: "user" });
    refuseMisplaced(command);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw new DemoError(`${error.message.replace(/^error: /, "")}\nAll options: npm run demo -- --help`, 2);
  }
  const [task] = command.args;
  return { ...command.opts<Omit<DemoOptions, "task">>(), ...(task !== undefined && { task }) };
}

function createCommand(): Command {
  return new Command("npm run demo --")
    .description("Two agents in a round-robin chat: one writes code, the other runs it.")
    .argument("[task]", "what they should do (default: a question about penguins.json)")
    .addOption(
      new Option("--executor <name>", "where the code runs; auto: behind the strongest fence; local: without a fence")
        .choices(executorNames)
        .default(executorNames[0]),
    )
    .option("--image <name>", "the image for Docker and Podman", notEmpty)
    .option("--host <name>", "the host for --executor ssh: [user@]address, or an alias of ~/.ssh/config", notEmpty)
    .option("--output <folder>", "where --executor jupyter keeps charts", notEmpty, "plots")
    .option("--model <name>", "the live model that writes the code", notEmpty)
    .option("--max-messages <n>", "end the chat after this many messages", positiveInteger, 12)
    .option("--record <file>", "write the model's answers to a file", notEmpty)
    .option("--replay <file>", "replay the model's answers from such a file", notEmpty)
    .option("--approve", "ask before each run of code", false)
    .option("--web", "show the chat on a local web page", false)
    .option("--port <n>", "the page's port (default: any free one)", portNumber, 0)
    .addHelpText("after", environmentHelp)
    .configureOutput({ writeErr: () => undefined })
    .exitOverride();
}

/** Rejects options that would be ignored. */
function refuseMisplaced(command: Command): void {
  const { executor, web, replay } = command.opts<Pick<DemoOptions, "executor" | "web" | "replay">>();
  const isGiven = (name: string): boolean => command.getOptionValueSource(name) === "cli";
  for (const [name, owners] of Object.entries(executorOptions)) {
    if (isGiven(name) && !owners.includes(executor)) {
      command.error(`--${name} is for --executor ${owners.join(" or ")}.`);
    }
  }
  if (isGiven("port") && !web) command.error("--port is for --web.");
  if (isGiven("model") && replay !== undefined) {
    command.error("--replay replays a model's answers, so there is no --model. Leave out one of them.");
  }
}

function notEmpty(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("It must not be empty.");
  return text;
}

function portNumber(text: string): number {
  const isPort = /^\d{1,5}$/.test(text) && Number(text) <= 65_535;
  if (!isPort) throw new InvalidArgumentError("It must be a port from 0 to 65535.");
  return Number(text);
}

function positiveInteger(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("It must be a whole number, at least 1.");
  return Number(text);
}
