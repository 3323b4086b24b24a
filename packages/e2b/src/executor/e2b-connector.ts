import { randomUUID } from "node:crypto";
import { EgressProxy } from "@fenced/egress";
import { type CommandLineRequest, findPlaceLanguages, programsOf, programsPlace } from "@fenced/executor-kit";
import {
  type Connection,
  type Connector,
  newAddress,
  pythonOf,
  requestedSettings,
  SentWorkspace,
  type SessionAddress,
  SessionNetwork,
  sessionToJson,
  SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
import type { E2BExecutorOptions } from "./e2b-executor-options.ts";
import type { LeftSandbox } from "./left-session.ts";
import { ControlClient } from "./service/control-client.ts";
import type { SandboxAccess } from "./service/service-address.ts";
import { serviceError } from "./service/service-error.ts";
import { assertCutOff } from "./session/assert-cut-off.ts";
import { E2BSession } from "./session/e2b-session.ts";
import { leaseMs } from "./session/sandbox-lease.ts";

interface E2BRequest extends CommandLineRequest<E2BExecutorOptions> {
  /** A session to connect to instead of creating the first sandbox. */
  readonly left: LeftSandbox | undefined;
}

const memorySentence =
  "\nThe block was killed, and the sandbox has killed processes because it was out of memory. Process less data at a time, or use a template with more memory.\n";

/** Connects to sandboxes of one service. */
export class E2BConnector implements Connector {
  readonly #request: E2BRequest;
  readonly #control: ControlClient;
  #current: E2BSession | undefined;

  constructor(request: E2BRequest) {
    this.#request = request;
    this.#control = new ControlClient(request.options);
  }

  /** Makes places of its sandboxes. */
  backend(): SupervisedBackend {
    const network = SessionNetwork.of(this.#request.options.network, EgressProxy);
    return new SupervisedBackend({ ...requestedSettings(this.#request), network, memorySentence }, this);
  }

  /** The sandbox that blocks currently run in. */
  get sandboxId(): string | undefined {
    return this.#current?.sandbox;
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { left, options } = this.#request;
    const { keepAliveMs = 0, workDir = "workspace", network = "open" } = options;
    const control = this.#control;
    if (left && !this.#current) {
      const { sandbox: id, directory, workspace, takeOver } = left;
      const old = { control, address: left, keepAliveMs, id, workspace, takeOver };
      this.#current = await E2BSession.connect(old, signal);
      return this.#connectionTo(this.#current, { address: left, directory, isLeft: true });
    }
    const address = newAddress();
    const sandbox = await this.#create(signal);
    const directory = `/tmp/fenced-${randomUUID().slice(0, 12)}`;
    const path = options.env?.["PATH"];
    const config = { directory, programs: programsOf(this.#request.table), ...(path !== undefined && { path }) };
    const session = await E2BSession.start({ control, address, keepAliveMs, sandbox, workDir, config }, signal);
    try {
      if (network !== "open") await assertCutOff(session, control.address, signal);
    } catch (error) {
      await session.close().catch(() => {});
      throw error;
    }
    this.#current = session;
    return this.#connectionTo(session, { address, directory, isLeft: false });
  }

  /** Pauses a sandbox that nobody is connected to. */
  async pause(id: string): Promise<void> {
    try {
      await this.#control.pause(id, new AbortController().signal);
    } catch (error) {
      throw serviceError(`The sandbox ${id} could not be paused`, "pause", this.#control.address, error);
    }
  }

  async close(): Promise<void> {
    this.#current = undefined;
  }

  async #create(signal: AbortSignal): Promise<SandboxAccess> {
    const { template = "base", metadata = {}, network = "open", keepAliveMs = 0 } = this.#request.options;
    const timeoutMs = leaseMs(keepAliveMs);
    try {
      return await this.#control.create({ template, metadata, timeoutMs, allowsInternet: network === "open" }, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw serviceError("The sandbox could not be created", "creation", this.#control.address, error);
    }
  }

  #connectionTo(
    session: E2BSession,
    {
      address,
      directory,
      isLeft,
    }: { readonly address: SessionAddress; readonly directory: string; readonly isLeft: boolean },
  ): Connection {
    const { options, id, table, givenLanguages, functionsModule } = this.#request;
    const { template = "base", env, keepAliveMs = 0, cleanupTempFiles } = options;
    const { supervisor, inventory, workspace: path, sandbox } = session;
    return {
      runner: supervisor,
      languages: findPlaceLanguages(table, givenLanguages, inventory, programsPlace(`the template ${template}`, env)),
      workspace: new SentWorkspace({
        supervisor,
        python: pythonOf(inventory),
        path,
        filePrefix: `.fenced-${id.slice(0, 8)}-`,
        keepFiles: cleanupTempFiles === false,
        functionsModule,
        // The functions' package is never listed.
        hasPackage: true,
      }),
      directory,
      lost: session.lost,
      isLosing: () => session.isLosing,
      ...(keepAliveMs > 0 && { session: sessionToJson({ id, ...address }, { sandbox, directory, workspace: path }) }),
      isLeft,
      end: async ({ isReplaced, isDetached }) => {
        // A sandbox that cannot be ended ends by itself.
        await (isReplaced ? session.close(isDetached).catch(() => {}) : session.close(isDetached));
      },
    };
  }
}
