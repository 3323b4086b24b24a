import type { Duplex } from "node:stream";
import { FunctionSetupError } from "@fenced/core";
import {
  type BackendFiles,
  RemoteFiles,
  type BackendSession,
  type BlockOutcome,
  type BlockRun,
  type FunctionPlaces,
  type PlaceFacts,
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

/** Milliseconds within which a session opens the socket for host functions. */
const openingMs = 60_000;
/** The service fixes it. */
const workspacePath = "/mnt/data";

/** Settings of a session. */
export interface AcaSessionSettings extends PoolSettings, Pick<ACAExecutorOptions, "outputDir"> {
  readonly keepSession: boolean;
  /** Whether the value of the last expression is printed. */
  readonly showsResult: boolean;
  readonly maxOutputBytes: number;
  /** Sets functions up again after the service's session was replaced in the middle of a call. */
  readonly setUpFunctions: () => Promise<void>;
  /** Called at once when variables are lost. */
  readonly onLost: (reason: string) => void;
}

/** A started executor's session in a pool; the service's session behind it may be replaced. */
export class AcaSession implements BackendSession {
  readonly #settings: AcaSessionSettings;
  readonly #pool: OpenPool;
  readonly #displays: DisplayBoard;
  #facts: PlaceFacts = {};

  private constructor(settings: AcaSessionSettings, displays: DisplayBoard) {
    this.#settings = settings;
    this.#displays = displays;
    this.#pool = new OpenPool(settings);
  }

  /** @throws BackendUnavailableError if the pool cannot be reached or refuses the session. */
  static async open(settings: AcaSessionSettings, signal: AbortSignal): Promise<AcaSession> {
    const session = new AcaSession(settings, await DisplayBoard.open(settings.outputDir, undefined));
    try {
      await explained(session.#pool.connect(signal));
      session.#pool.place.onLost = settings.onLost;
      session.#facts = { capabilities: capabilitiesOf(session.#pool.language, settings), workspacePath };
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  get facts(): PlaceFacts {
    return this.#facts;
  }

  get files(): BackendFiles {
    return this.#filesUntil();
  }

  /** The identifier of the service's session. */
  get identifier(): string {
    return this.#pool.place.identifier;
  }

  /** Names of the packages that blocks can import without installing anything. */
  packages(): Promise<readonly string[]> {
    return explained(this.#pool.packages());
  }

  async functionPlaces(): Promise<Omit<FunctionPlaces, "owner">> {
    const { functions } = this.#settings;
    const needed = functions.some((each) => (each.requirements.pythonPackages ?? []).length > 0);
    if (needed) checkPackages(functions, await this.packages());
    return { python: this.#pool.functionsDirectory };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { place } = this.#pool;
    for (let attempt = 1; ; attempt += 1) {
      const session = await explained(place.session());
      if (!session.line) {
        throw new FunctionSetupError("Code in sessions of this pool cannot call host functions", {
          remedy: 'Use a pool of type PythonLTS with the transport "pump", or leave the host functions out.',
        });
      }
      try {
        return await session.line.openCalls(accept, AbortSignal.timeout(openingMs));
      } catch (error) {
        const state = isSessionGone(error) ? "gone" : error instanceof PumpLostError ? "bare" : undefined;
        if (state === undefined || attempt >= 3) throw explainError(error);
        place.lossUnreported = true;
        await explained(state === "gone" ? place.renew(session) : place.repair(session));
      }
    }
  }

  async run(block: BlockRun, sink: Sink): Promise<BlockOutcome> {
    const writeFile = async (): Promise<void> => {
      if (block.filename !== undefined) await this.#filesUntil(sink.signal).write(block.filename, block.code);
    };
    await writeFile();
    const { maxOutputBytes, showsResult, setUpFunctions } = this.#settings;
    const Run = this.#pool.transport === "pump" ? PumpRun : RequestRun;
    const remote = new Run(block, sink, this.#pool, {
      maxOutputBytes,
      showsResult,
      displays: this.#displays.forBlock(),
      writeFile,
      setUpFunctions,
    });
    try {
      return await remote.run();
    } catch (error) {
      throw explainError(error);
    }
  }

  async reset(): Promise<void> {
    const { place } = this.#pool;
    await explained(place.replace(place.current));
    place.functionsMissing = false;
    place.lossUnreported = false;
  }

  async close(): Promise<void> {
    try {
      await explained(this.#pool.close(this.#settings.keepSession));
    } finally {
      await this.#displays.close();
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
