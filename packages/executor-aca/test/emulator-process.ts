import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { bundledCommand } from "@fenced/test-support/bundled-command";

/** An emulator in its own process, as users run it, so that its memory does not count as the executor's. */
export interface EmulatorProcess extends AsyncDisposable {
  readonly endpoint: string;
  readonly token: string;
  readonly pid: number;
  sessions(): Promise<string[]>;
  setFaults(faults: readonly object[]): Promise<void>;
  /** Ends a session as its cooldown does: its identifier is rejected from then on. */
  expire(identifier: string): Promise<void>;
}

const [program, ...words] = await bundledCommand(join(import.meta.dirname, "../../aca-emulator/src/cli.ts"));

export async function startEmulatorProcess(...flags: readonly string[]): Promise<EmulatorProcess> {
  const child = spawn(program, [...words, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  const said = new Map<string, string>();
  for await (const line of createInterface({ input: child.stdout })) {
    const [word = "", value = ""] = line.split(" ");
    said.set(word, value);
    if (said.has("token")) break;
  }
  const endpoint = said.get("endpoint") ?? "";
  const token = said.get("token") ?? "";
  const headers = { authorization: `Bearer ${token}` };
  const own = (path: string): string => new URL(`/.emulator/${path}`, endpoint).href;
  return {
    endpoint,
    token,
    pid: child.pid ?? 0,
    sessions: async () => {
      const { value } = (await (await fetch(own("sessions"), { headers })).json()) as { value: string[] };
      return value;
    },
    setFaults: async (faults) => {
      await fetch(own("faults"), { method: "PUT", body: JSON.stringify(faults), headers });
    },
    expire: async (identifier) => {
      const faults = [{ kind: "expired-session", on: "session", times: 1 }];
      await fetch(own("faults"), { method: "PUT", body: JSON.stringify(faults), headers });
      const query = new URLSearchParams({ "api-version": "2025-10-02-preview", identifier });
      await fetch(`${endpoint}/session?${query.toString()}`, { headers });
    },
    [Symbol.asyncDispose]: () => end(child),
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
