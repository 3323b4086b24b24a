import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** An emulator in a process of its own, as its users run it: what it holds in memory does not count for the executor. */
export interface EmulatorProcess extends AsyncDisposable {
  readonly endpoint: string;
  readonly token: string;
  readonly pid: number;
  sessions(): Promise<string[]>;
  setFaults(faults: readonly object[]): Promise<void>;
}

const cli = join(import.meta.dirname, "../../aca-emulator/src/cli.ts");

export async function startEmulatorProcess(...flags: readonly string[]): Promise<EmulatorProcess> {
  const node = ["--conditions=@fenced/source", "--import", "tsx", cli, ...flags];
  const child = spawn(process.execPath, node, { stdio: ["ignore", "pipe", "inherit"] });
  const said = new Map<string, string>();
  for await (const line of createInterface({ input: child.stdout })) {
    const [word = "", value = ""] = line.split(" ");
    said.set(word, value);
    if (said.has("token")) break;
  }
  const endpoint = said.get("endpoint") ?? "";
  const own = (path: string): string => new URL(`/.emulator/${path}`, endpoint).href;
  return {
    endpoint,
    token: said.get("token") ?? "",
    pid: child.pid ?? 0,
    sessions: async () => {
      const { value } = (await (await fetch(own("sessions"))).json()) as { value: string[] };
      return value;
    },
    setFaults: async (faults) => {
      await fetch(own("faults"), { method: "PUT", body: JSON.stringify(faults) });
    },
    [Symbol.asyncDispose]: () => end(child),
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
