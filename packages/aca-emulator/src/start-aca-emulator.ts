import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, realpath } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { checkOptions } from "./check-options.ts";
import type { EmulatorOptions } from "./emulator-options.ts";
import { PinnedDirectory } from "./files/pinned-directory.ts";
import { AccessGuard, type TokenOptions } from "./http/access-guard.ts";
import { FaultList, type Fault } from "./http/faults.ts";
import { handleRequest } from "./http/request-handler.ts";
import { RuntimeFacts } from "./runtime-facts.ts";
import { findFence, noFence, type Fence } from "./sessions/fence.ts";
import { SessionPool } from "./sessions/session-pool.ts";

/** A running emulator. */
export interface AcaEmulator extends AsyncDisposable {
  /** The pool's address: a client's pool management endpoint. */
  readonly endpoint: string;
  /** How its sessions are isolated from this host; see `EmulatorOptions.namespaces`. */
  readonly fence: "namespaces" | "none";
  /** A token that the emulator accepts, for an hour by default. */
  token(options?: TokenOptions): string;
  /** The identifiers that currently have a session. */
  sessions(): string[];
  /** Injects a fault in addition to the existing ones. @returns a function that ends it. */
  provoke(fault: Fault): () => void;
  /** Replaces all faults with these. */
  setFaults(faults: readonly Fault[]): void;
  /** Ends all sessions and the server. Idempotent. */
  stop(): Promise<void>;
}

const poolPath = "/subscriptions/local/resourceGroups/local/sessionPools/local";

/**
 * Starts a server with the data plane API of Azure Container Apps dynamic sessions. **It runs the code that it
 * receives**, as the user who runs this program.
 *
 * @throws TypeError if an option is unknown or wrong.
 * @throws Error if Python cannot be run or the port is taken.
 *
 * @example
 * await using emulator = await startAcaEmulator();
 * const answer = await fetch(`${emulator.endpoint}/executions?api-version=2025-10-02-preview&identifier=demo`, {
 *   method: "POST",
 *   headers: { authorization: `Bearer ${emulator.token()}`, "content-type": "application/json" },
 *   body: JSON.stringify({ codeInputType: "Inline", executionType: "Synchronous", code: "6 * 7" }),
 * });
 */
export async function startAcaEmulator(options: EmulatorOptions = {}): Promise<AcaEmulator> {
  checkOptions(options);
  const [python, poolType] = [options.python ?? "python3", options.poolType ?? "PythonLTS"];
  const programs = [...(await placesOf(python)), ...programPlaces(process.execPath)];
  const fence = options.namespaces === false ? noFence : findFence(programs);
  // Starts Python once more; not needed for the one of the system.
  if (options.python !== undefined) await checkFence(fence, python);
  const root = await realpath(await mkdtemp(path.join(tmpdir(), "fenced-emulator-")));
  const uploads = path.join(root, "uploads");
  await mkdir(uploads, { mode: 0o700 });
  const releaseRoot = leashDirectory(root);
  const sessions = new SessionPool({
    root,
    uploads,
    python,
    poolType,
    fence,
    maxSessions: options.maxSessions ?? 100,
    cooldownMs: options.cooldownMs ?? 300_000,
  });
  const faults = new FaultList(options.faults);
  const pool = {
    sessions,
    poolType,
    createdAt: new Date(),
    syncLimitSeconds: Math.max(1, Math.floor((options.syncLimitMs ?? 220_000) / 1000)),
    outputLimit: options.outputLimit ?? 1_048_576,
    pageSize: options.pageSize ?? 100,
    wrappedBodies: options.wrappedBodies ?? false,
    facts: new RuntimeFacts({ ...options, python, poolType }),
  };
  const host = options.host ?? "127.0.0.1";
  const guard = new AccessGuard({ names: [host, ...(options.allowedHosts ?? [])], token: options.token });
  const emulation = { pool, faults, guard, poolPath };
  const server = createServer((message, response) => void handleRequest(emulation, message, response));
  server.requestTimeout = 0;
  const cleanUp = async (): Promise<void> => {
    await sessions.end();
    await removeDirectory(root);
    await releaseRoot();
  };
  try {
    server.listen(options.port ?? 0, host);
    await once(server, "listening");
  } catch (error) {
    await cleanUp();
    throw error;
  }
  return running(server, { fence, faults, sessions, guard, cleanUp });
}

interface Parts {
  readonly fence: Fence;
  readonly faults: FaultList;
  readonly sessions: SessionPool;
  readonly guard: AccessGuard;
  readonly cleanUp: () => Promise<void>;
}

function running(server: Server, { fence, faults, sessions, guard, cleanUp }: Parts): AcaEmulator {
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await cleanUp();
  };
  const emulator: AcaEmulator = {
    endpoint: `http://${addressOf(server)}${poolPath}`,
    fence: fence.kind,
    token: (tokenOptions) => guard.token(tokenOptions),
    sessions: () => sessions.identifiers,
    provoke: (fault) => faults.add(fault),
    setFaults: (all) => faults.replace(all),
    stop: () => (stopped ??= stop()),
    [Symbol.asyncDispose]: () => emulator.stop(),
  };
  return emulator;
}

function addressOf(server: Server): string {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("The server is not listening on a port.");
  return address.family === "IPv6" ? `[${address.address}]:${address.port}` : `${address.address}:${address.port}`;
}

async function removeDirectory(directory: string): Promise<void> {
  await using parent = await PinnedDirectory.open(path.dirname(directory));
  await parent.remove(path.basename(directory), AbortSignal.timeout(30_000));
}

const pythonPlaces = `import json, os, sys
if sys.version_info < (3, 8): sys.exit(1)
print(json.dumps([os.path.dirname(sys.executable), sys.prefix, sys.base_prefix, sys.exec_prefix]))`;

/**
 * The directories that Python needs.
 *
 * @throws Error if it cannot be run.
 */
async function placesOf(python: string): Promise<string[]> {
  try {
    const { stdout } = await promisify(execFile)(python, ["-c", pythonPlaces], { cwd: "/" });
    const places: unknown = JSON.parse(stdout);
    const named = Array.isArray(places) ? places.filter((place) => typeof place === "string") : [];
    return [...named, ...(path.isAbsolute(python) ? [path.dirname(python)] : [])];
  } catch (cause) {
    throw new Error(
      `Sessions need Python 3.8 or later, but ${python} is missing or older. Install it, or set \`python\` to another one.`,
      { cause },
    );
  }
}

/** The directory of a program, with what is installed beside it. */
function programPlaces(program: string): string[] {
  const directory = path.dirname(program);
  return [path.basename(directory) === "bin" ? path.dirname(directory) : directory];
}

/** @throws Error if a session cannot run Python: its `/tmp` and `/mnt` are not the host's. */
async function checkFence(fence: Fence, python: string): Promise<void> {
  if (fence.kind === "none") return;
  const [program, ...words] = fence.wrap([python, "-c", ""], "/");
  await promisify(execFile)(program, words, { cwd: "/" }).catch((cause: unknown) => {
    const reason = cause instanceof Error && "stderr" in cause ? String(cause.stderr).trim().slice(-1000) : "";
    throw new Error(
      `Sessions cannot run ${python}, because their /tmp and /mnt are not this machine's: ${reason}. Install it elsewhere, or set \`namespaces\` to false.`,
      { cause },
    );
  });
}

/** Deletes the directory if this program ends without releasing it; sessions then end on their own. */
function leashDirectory(directory: string): () => Promise<void> {
  const program = `trap '' HUP INT TERM; while read -r line; do :; done; sleep 2; rm -rf -- "$1"`;
  const shell = spawn("/bin/sh", ["-c", program, "leash", directory], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
  });
  shell.on("error", () => {});
  return async () => {
    if (shell.pid === undefined || shell.exitCode !== null) return;
    shell.kill("SIGKILL");
    await once(shell, "exit");
  };
}
