#!/usr/bin/env node
import { Command, InvalidArgumentError, Option } from "commander";
import { parseFaults, type Fault } from "./http/faults.ts";
import type { PoolType } from "./sessions/session-process.ts";
import { startAcaEmulator } from "./start-aca-emulator.ts";

interface Flags {
  readonly port: number;
  readonly host: string;
  readonly allowHost?: readonly string[];
  readonly pool: PoolType;
  readonly python: string;
  readonly maxSessions: number;
  readonly cooldownMs: number;
  readonly token?: string;
  readonly syncLimitMs: number;
  readonly outputLimit: number;
  readonly pageSize: number;
  readonly wrappedBodies?: true;
  readonly namespaces: boolean;
  readonly fault?: readonly Fault[];
}

const program = new Command("aca-emulator")
  .description(
    "A local server with the API of Azure Container Apps dynamic sessions. It runs the code that it receives.",
  )
  .option("--port <number>", "the port; 0 picks a free one", whole, 0)
  .option("--host <address>", "the address to listen on", "127.0.0.1")
  .option("--allow-host <name>", "another host name that clients may use; repeatable", collect)
  .addOption(
    new Option("--pool <type>", "what sessions run").choices(["PythonLTS", "NodeLTS", "Shell"]).default("PythonLTS"),
  )
  .option("--python <program>", "the Python that sessions run on, 3.8 or later", "python3")
  .option("--max-sessions <number>", "maximum number of sessions at once", whole, 100)
  .option("--cooldown-ms <number>", "time without requests after which a session ends, in milliseconds", whole, 300_000)
  .option("--token <text>", "a bearer token to accept in addition to generated ones")
  .option("--sync-limit-ms <number>", "time limit of a synchronous execution, in milliseconds", whole, 220_000)
  .option("--output-limit <bytes>", "the maximum outputStreamsMaxLength", whole, 1_048_576)
  .option("--page-size <number>", "entries per page of a file list", whole, 100)
  .option("--wrapped-bodies", "refuse flat bodies with SessionPropertiesMissing")
  .option("--no-namespaces", "do not isolate sessions with namespaces")
  .option("--fault <json>", 'a fault to inject, such as {"kind":"drop","rate":0.05}; repeatable', fault)
  .action(run);

await program.parseAsync().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? inOptions(error) : String(error)}\n`);
  process.exitCode = 1;
});

async function run(flags: Flags): Promise<void> {
  const { pool, fault: faults, allowHost, ...rest } = flags;
  const emulator = await startAcaEmulator({
    ...rest,
    poolType: pool,
    faults: faults ?? [],
    allowedHosts: allowHost ?? [],
  });
  process.stdout.write(
    `endpoint ${emulator.endpoint}\ntoken ${flags.token ?? emulator.token({ expiresInMs: 86_400_000 })}\n`,
  );
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void emulator.stop().then(() => process.exit(0)));
  }
}

/** What an error says, with the library's options called as they are on the command line. */
function inOptions(error: Error): string {
  if ("code" in error && error.code === "EADDRINUSE") return `${error.message}. Choose another --port.`;
  return error.message
    .replace(/^startAcaEmulator: the option "(\w+)"/, (_, name: string) => flagOf(name))
    .replaceAll("set `namespaces` to false", "set --no-namespaces")
    .replaceAll("`python`", "--python");
}

function flagOf(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function collect(name: string, before: readonly string[] = []): string[] {
  return [...before, name];
}

function whole(text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError("Use a whole number.");
}

function fault(text: string, before: readonly Fault[] = []): Fault[] {
  try {
    return [...before, ...parseFaults([JSON.parse(text)])];
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error));
  }
}
