import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { EmulatorOptions } from "./emulator-options.ts";
import { createToken, type TokenOptions } from "./http/bearer-token.ts";
import { FaultList } from "./http/fault-list.ts";
import type { Fault } from "./http/fault.ts";
import { handleRequest } from "./http/request-handler.ts";
import { RuntimeFacts } from "./runtime-facts.ts";
import { findFence, noFence, type Fence } from "./sessions/fence.ts";
import { SessionPool } from "./sessions/session-pool.ts";

/** A running emulator. */
export interface AcaEmulator extends AsyncDisposable {
  /** The pool's address: what a client takes for its pool management endpoint. */
  readonly endpoint: string;
  /** How its sessions are kept apart from this host: see `EmulatorOptions.namespaces`. */
  readonly fence: "namespaces" | "none";
  /** A token that it accepts, for an hour unless told otherwise. */
  token(options?: TokenOptions): string;
  /** The identifiers that have a session now. */
  sessions(): string[];
  /** Lets something go wrong, besides what does already. @returns a function that ends it. */
  provoke(fault: Fault): () => void;
  /** Lets these things go wrong and no others. */
  setFaults(faults: readonly Fault[]): void;
  /** Ends all sessions and the server. Idempotent. */
  stop(): Promise<void>;
}

const poolPath = "/subscriptions/local/resourceGroups/local/sessionPools/local";

/**
 * Starts a server that speaks the data plane of Azure Container Apps dynamic sessions. **It runs the code that it is
 * sent**, as the user who runs this program.
 *
 * @throws Error if the Python cannot be run or the port is taken.
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
  const [python, poolType] = [options.python ?? "python3", options.poolType ?? "PythonLTS"];
  await checkPython(python);
  const fence = options.namespaces === false ? noFence : findFence();
  const root = await realpath(await mkdtemp(path.join(tmpdir(), "fenced-emulator-")));
  const releaseRoot = leashDirectory(root);
  const sessions = new SessionPool({
    root,
    python,
    poolType,
    fence,
    maxSessions: options.maxSessions ?? 100,
    cooldownSeconds: options.cooldownSeconds ?? 300,
  });
  const faults = new FaultList(options.faults);
  const facts = new RuntimeFacts({ ...options, python, poolType });
  const pool = {
    sessions,
    poolType,
    createdAt: new Date(),
    syncLimitSeconds: options.syncLimitSeconds ?? 220,
    outputLimit: options.outputLimit ?? 1_048_576,
    pageSize: options.pageSize ?? 100,
    wrappedBodies: options.wrappedBodies ?? false,
    packages: () => facts.packages(),
    runtime: () => facts.runtime(),
  };
  const emulation = { pool, faults, token: options.token, poolPath };
  const server = createServer((message, response) => void handleRequest(emulation, message, response));
  server.requestTimeout = 0;
  const cleanUp = async (): Promise<void> => {
    await sessions.end();
    await rm(root, { recursive: true, force: true });
    await releaseRoot();
  };
  try {
    server.listen(options.port ?? 0, options.host ?? "127.0.0.1");
    await once(server, "listening");
  } catch (error) {
    await cleanUp();
    throw error;
  }
  return running(server, { fence, faults, sessions, cleanUp });
}

interface Parts {
  readonly fence: Fence;
  readonly faults: FaultList;
  readonly sessions: SessionPool;
  readonly cleanUp: () => Promise<void>;
}

function running(server: Server, { fence, faults, sessions, cleanUp }: Parts): AcaEmulator {
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await cleanUp();
  };
  const emulator: AcaEmulator = {
    endpoint: `http://${addressOf(server)}${poolPath}`,
    fence: fence.kind,
    token: (tokenOptions) => createToken(tokenOptions),
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
  if (address === null || typeof address === "string") throw new Error("The server listens on no port.");
  return address.family === "IPv6" ? `[${address.address}]:${address.port}` : `${address.address}:${address.port}`;
}

async function checkPython(python: string): Promise<void> {
  const check = "import sys; sys.exit(sys.version_info < (3, 8))";
  await promisify(execFile)(python, ["-c", check]).catch((cause: unknown) => {
    throw new Error(`Sessions need Python 3.8 or later, which ${python} is not. Give another one as \`python\`.`, {
      cause,
    });
  });
}

/** Deletes the directory if this program ends without having released it; sessions end by themselves then. */
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
