#!/usr/bin/env node
import { Command, InvalidArgumentError } from "commander";
import type { PoolType } from "./emulator-options.ts";
import type { Fault } from "./http/fault.ts";
import { parseFaults } from "./http/parse-faults.ts";
import { startAcaEmulator } from "./start-aca-emulator.ts";

interface Flags {
  readonly port: number;
  readonly host: string;
  readonly pool: PoolType;
  readonly python: string;
  readonly maxSessions: number;
  readonly cooldown: number;
  readonly token?: string;
  readonly syncLimit: number;
  readonly outputLimit: number;
  readonly pageSize: number;
  readonly wrappedBodies?: true;
  readonly namespaces: boolean;
  readonly fault?: readonly Fault[];
}

const program = new Command("aca-emulator")
  .description("A local server that speaks the API of Azure Container Apps dynamic sessions. It runs what it is sent.")
  .option("--port <number>", "the port; 0: any that is free", whole, 0)
  .option("--host <address>", "the address to listen on", "127.0.0.1")
  .option("--pool <type>", "PythonLTS, NodeLTS or Shell", poolType, "PythonLTS")
  .option("--python <program>", "the Python of the sessions, 3.8 or later", "python3")
  .option("--max-sessions <number>", "sessions at once", whole, 100)
  .option("--cooldown <seconds>", "life of a session without requests", whole, 300)
  .option("--token <text>", "a bearer token to accept")
  .option("--sync-limit <seconds>", "the longest synchronous execution", whole, 220)
  .option("--output-limit <bytes>", "the highest outputStreamsMaxLength", whole, 1_048_576)
  .option("--page-size <number>", "entries on one page of a list of files", whole, 100)
  .option("--wrapped-bodies", "refuse flat bodies with SessionPropertiesMissing")
  .option("--no-namespaces", "do not fence sessions off")
  .option("--fault <json>", 'something that goes wrong, such as {"kind":"drop","rate":0.05}; may be repeated', fault)
  .action(run);

await program.parseAsync();

async function run(flags: Flags): Promise<void> {
  const { pool, cooldown, syncLimit, fault: faults, ...rest } = flags;
  const emulator = await startAcaEmulator({
    ...rest,
    poolType: pool,
    cooldownSeconds: cooldown,
    syncLimitSeconds: syncLimit,
    faults: faults ?? [],
  });
  process.stdout.write(
    `endpoint ${emulator.endpoint}\ntoken ${flags.token ?? emulator.token({ expiresInSeconds: 86_400 })}\n`,
  );
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void emulator.stop().then(() => process.exit(0)));
  }
}

function whole(text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError("It is not a whole number.");
}

function poolType(text: string): PoolType {
  if (text === "PythonLTS" || text === "NodeLTS" || text === "Shell") return text;
  throw new InvalidArgumentError("It is none of PythonLTS, NodeLTS and Shell.");
}

function fault(text: string, before: readonly Fault[] = []): Fault[] {
  try {
    return [...before, ...parseFaults([JSON.parse(text)])];
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error));
  }
}
