import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { FencedError } from "@fenced/core";
import { findPlaceLanguages, hostEnvironment, programsOf } from "@fenced/executor-kit";
import {
  attachCommand,
  type Connection,
  type Connector,
  outerServerCommand,
  type SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
import { NoPython } from "../running-supervisor.ts";
import { interpreterBehind, realPath, trustedPrograms } from "../sandbox/find-installations.ts";
import { LimitGroups, type SandboxLimits } from "../sandbox/limit-groups.ts";
import { prepareSandbox, sandboxDirectory, searchPathOf } from "../sandbox/prepare-sandbox.ts";
import { inSandbox, sandboxBackend, type SandboxSettings } from "../sandbox/sandbox-connector.ts";
import { explainStart } from "../sandbox/sandbox-problems.ts";
import { bubblewrapStart, StartedBubblewrap } from "../sandbox/started-bubblewrap.ts";
import { type KeptSession, type SessionAccess, startedSession } from "./kept-process.ts";
import {
  connectToSession,
  createSession,
  type KeptSettings,
  makeWorkDirectory,
  type PreparedSession,
  type SessionParts,
} from "./kept-session.ts";

/** The settings of sessions in a sandbox that outlive their program. */
export interface KeptSandboxSettings extends SandboxSettings, KeptSettings {}

/**
 * Connects to Linux sandboxes that outlive this program. The server of each session is outside, where its code can
 * neither stop nor trace it, and starts the sandbox, which ends with it.
 */
export class KeptSandboxConnector implements Connector {
  readonly #settings: KeptSandboxSettings;
  #left: KeptSandboxSettings["left"];

  private constructor(settings: KeptSandboxSettings) {
    this.#settings = settings;
    this.#left = settings.left;
  }

  /** Creates the work directory, if it is given. */
  static async open(settings: KeptSandboxSettings): Promise<KeptSandboxConnector> {
    await makeWorkDirectory(settings);
    return new KeptSandboxConnector(settings);
  }

  /** The work directory, if it is given. */
  get workDirectory(): string | undefined {
    return this.#settings.workDirectory;
  }

  /** Makes places of its sandboxes. */
  backend(): SupervisedBackend {
    return sandboxBackend(this.#settings, this);
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { id, table, givenLanguages, keepAliveMs } = this.#settings;
    const session: KeptSession = this.#left ? { ...this.#left, keepAliveMs } : await this.#create();
    const connection = await connectToSession(
      this.#settings,
      {
        session,
        access: await this.#access(session),
        directory: sandboxDirectory(id),
        isLeft: this.#left !== undefined,
        lostRemedy: "Call again to start a new one. If it happens again, raise `memoryBytes`.",
        languages: (inventory) => findPlaceLanguages(table, givenLanguages, inventory, inSandbox),
        variables: (given) => ({ ...given, ...session.variables }),
      },
      signal,
    );
    this.#left = undefined;
    return connection;
  }

  async close(): Promise<void> {
    // Each session has what cleans up after it.
  }

  async #create(): Promise<KeptSession> {
    const groups = await LimitGroups.plan(`fenced-${randomUUID()}`);
    return createSession(
      this.#settings,
      { all: groups.all, make: () => groups.make(this.#settings), remove: () => groups.remove() },
      (parts) => this.#prepare(parts),
    );
  }

  async #prepare(parts: SessionParts<SandboxLimits>): Promise<PreparedSession> {
    const { directories, groups: limits, socket: name, mark } = parts;
    // Files are reached through a Python in there.
    const programs = [...new Set([...programsOf(this.#settings.table), "python3"])];
    const prepared = await prepareSandbox(this.#settings, programs, directories, limits);
    const { plan, firstEnvironment, blockEnvironment: variables } = prepared;
    const untrusted = plan.shared.filter(({ mode }) => mode === "write").map(({ source }) => source);
    const { python } = await this.#outside(untrusted);
    const env = { ...firstEnvironment, ...mark };
    const { command: inner, input, descriptors: control } = bubblewrapStart(plan, env, true);
    const [program, ...words] = outerServerCommand({ name, python, command: inner, control });
    return {
      groups: limits.groups,
      variables,
      start: (cleaner) => {
        const stdio = [...Array.from({ length: control }, () => "pipe" as const), cleaner];
        const child = spawn(program, words, { cwd: "/", env, stdio, detached: true });
        const streams = startedSession(child);
        const bubblewrap = new StartedBubblewrap(child, plan);
        let hasAnswered = false;
        return {
          streams,
          input,
          check: async () => {
            hasAnswered = true;
            await bubblewrap.checkGroups();
          },
          explain: (cause) => {
            if (cause instanceof NoPython) return explainStart("execvp python3");
            return hasAnswered && FencedError.isInstance(cause) ? cause : explainStart(bubblewrap.said, cause);
          },
        };
      },
    };
  }

  /** A program that connects from outside: nothing that code has written may run there. */
  async #access({ socket, workspace }: KeptSession): Promise<SessionAccess> {
    const { python, trustedPath } = await this.#outside([workspace, ...this.#settings.writable]);
    return { command: attachCommand(socket, python), env: { ...hostEnvironment([]), PATH: trustedPath } };
  }

  /**
   * What runs outside of the sandbox.
   *
   * @throws BackendUnavailableError if there is no Python that no code can have changed.
   */
  async #outside(writable: readonly string[]): Promise<{ readonly python: string; readonly trustedPath: string }> {
    const found = trustedPrograms({ searchPath: searchPathOf(this.#settings), untrusted: writable.map(realPath) });
    const python = await interpreterBehind(found);
    if (python === undefined) throw explainStart("execvp python3");
    return { python, trustedPath: found.trustedPath };
  }
}
