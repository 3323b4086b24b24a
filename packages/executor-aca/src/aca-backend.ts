import type { Duplex } from "node:stream";
import { FunctionSetupError } from "@fenced/core";
import {
  type Backend,
  type BackendFiles,
  type BlockOutcome,
  type BlockRun,
  type FunctionPlaces,
  type Opening,
  type Place,
  PlaceGone,
  RemoteFiles,
  type Sink,
} from "@fenced/executor-kit";
import { DisplayBoard } from "@fenced/executor-kit/displays";
import type { ACAExecutorOptions } from "./aca-executor-options.ts";
import { AcaFileAccess, type CallSession } from "./files/aca-file-access.ts";
import { checkPackages } from "./functions/check-packages.ts";
import { explainError } from "./http/explain-error.ts";
import { isSessionGone } from "./http/service-error.ts";
import { capabilitiesOf, OpenPool, type PoolSettings } from "./open-pool.ts";
import { PumpRun } from "./pump-run.ts";
import { PumpLostError } from "./pump/pump-line.ts";
import { RequestRun } from "./request-run.ts";
import { isLogName } from "./session/output-log.ts";
import type { RemoteSession } from "./session/remote-session.ts";

/** Milliseconds within which a session opens the socket for host functions. */
const openingMs = 60_000;
/** The service fixes it. */
const workspacePath = "/mnt/data";

/** Settings of a session. */
export interface AcaSettings extends PoolSettings, Pick<ACAExecutorOptions, "outputDir"> {
  readonly keepSession: boolean;
  /** Whether the value of the last expression is printed. */
  readonly showsResult: boolean;
  readonly maxOutputBytes: number;
}

/** A pool, in which the service's session may have to be prepared again or replaced. */
export class AcaBackend implements Backend {
  readonly #settings: AcaSettings;
  readonly #pool: OpenPool;
  readonly #displays: DisplayBoard;
  #isConnected = false;

  private constructor(settings: AcaSettings, displays: DisplayBoard) {
    this.#settings = settings;
    this.#displays = displays;
    this.#pool = new OpenPool(settings);
  }

  /** Creates it; nothing is sent yet. */
  static async create(settings: AcaSettings): Promise<AcaBackend> {
    return new AcaBackend(settings, await DisplayBoard.open(settings.outputDir, undefined));
  }

  /** The identifier of the service's session. */
  get identifier(): string {
    return this.#pool.place.identifier;
  }

  /** Names of the packages that blocks can import without installing anything. */
  packages(): Promise<readonly string[]> {
    return explained(this.#pool.packages());
  }

  async open({ signal, isRestart }: Opening): Promise<Place> {
    const pool = this.#pool;
    if (!this.#isConnected) await explained(pool.connect(signal));
    else if (isRestart) await explained(pool.place.replace(pool.place.current));
    this.#isConnected = true;
    const session = await explained(pool.place.session(signal));
    const lost = new Promise<Error>((resolve) => {
      pool.place.onLost = (reason) => resolve(new Error(reason));
    });
    return {
      facts: { capabilities: capabilitiesOf(pool.language, this.#settings), workspacePath, filesStay: true },
      files: this.#filesUntil(),
      lost,
      functionPlaces: () => this.#functionPlaces(),
      openHostCalls: (accept) => this.#openHostCalls(session, accept),
      run: (block, sink) => this.#run(block, sink, session),
      // The service's session is replaced with the next one, which gets its files.
      end: () => Promise.resolve(),
    };
  }

  async close(): Promise<void> {
    try {
      await explained(this.#pool.close(this.#settings.keepSession));
    } finally {
      await this.#displays.close();
    }
  }

  async #functionPlaces(): Promise<Omit<FunctionPlaces, "owner">> {
    const { functions } = this.#settings;
    const needed = functions.some((each) => (each.requirements.pythonPackages ?? []).length > 0);
    if (needed) checkPackages(functions, await this.packages());
    return { python: this.#pool.functionsDirectory };
  }

  async #openHostCalls(session: RemoteSession, accept: (connection: Duplex) => void): Promise<string> {
    if (!session.line) {
      throw new FunctionSetupError("Code in sessions of this pool cannot call host functions", {
        remedy: 'Use a pool of type PythonLTS with the transport "pump", or leave the host functions out.',
      });
    }
    try {
      return await session.line.openCalls(accept, AbortSignal.timeout(openingMs));
    } catch (error) {
      const state = isSessionGone(error) ? "gone" : error instanceof PumpLostError ? "bare" : undefined;
      if (state === undefined) throw explainError(error);
      throw new PlaceGone(this.#pool.place.leave(session, state));
    }
  }

  async #run(block: BlockRun, sink: Sink, session: RemoteSession): Promise<BlockOutcome> {
    if (block.filename !== undefined) await this.#filesUntil(sink.signal).write(block.filename, block.code);
    const { maxOutputBytes, showsResult } = this.#settings;
    const Run = this.#pool.transport === "pump" ? PumpRun : RequestRun;
    const displays = this.#displays.forBlock();
    const remote = new Run(block, sink, session, { pool: this.#pool, maxOutputBytes, showsResult, displays });
    try {
      return await remote.run();
    } catch (error) {
      throw error instanceof PlaceGone ? error : explainError(error);
    }
  }

  /** @param signal - ends file operations. */
  #filesUntil(signal?: AbortSignal): BackendFiles {
    const { place } = this.#pool;
    const call: CallSession = async (use) => {
      await explained(place.session(signal));
      return place.use(use, signal);
    };
    return new RemoteFiles(new AcaFileAccess(call, signal), isLogName);
  }
}

async function explained<T>(promise: Promise<T>): Promise<T> {
  return promise.catch((error: unknown) => {
    throw explainError(error);
  });
}
