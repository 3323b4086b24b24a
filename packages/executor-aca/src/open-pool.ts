import { type ExecutorCapabilities, InvalidInputError, type FunctionWithRequirements } from "@fenced/core";
import type { ACAExecutorOptions } from "./aca-executor-options.ts";
import { metadataSchema, olderVersion, type PoolMetadata } from "./api/wire-types.ts";
import { PoolClient, type PoolAccess } from "./http/pool-client.ts";
import { ServiceError } from "./http/service-error.ts";
import { logNameOf } from "./session/output-log.ts";
import { type OfferedFunctions, poolLanguages, type PoolLanguage } from "./session/pool-language.ts";
import { ScratchDirectory } from "./session/scratch-directory.ts";
import { SessionPlace } from "./session/session-place.ts";

/** How to reach a pool, and what is known about it. */
export interface PoolSettings
  extends PoolAccess, Pick<ACAExecutorOptions, "poolType" | "sessionId" | "transport" | "egress"> {
  /** The executor's id, globally unique. */
  readonly id: string;
  readonly version: string;
  readonly functions: readonly FunctionWithRequirements[];
  /** The module that they are imported from. */
  readonly functionsModule: string;
}

/** How blocks run: in a thread of the interpreter, polled in steps, or each as one execution of the service. */
type Transport = NonNullable<ACAExecutorOptions["transport"]>;

/** Milliseconds for calls in progress when the pool is closed, and for ending a session that was never ready. */
const shortPatienceMs = 5000;

/** How blocks in a language run. @param wanted - the executor's option. */
function transportOf(language: PoolLanguage, wanted: Transport | undefined): Transport {
  return language.pumps ? (wanted ?? "pump") : "request";
}

/** What an executor with a pool of this language can do. */
export function capabilitiesOf(
  language: PoolLanguage,
  { transport, egress }: Pick<PoolSettings, "transport" | "egress">,
): ExecutorCapabilities {
  return {
    ...language.capabilities,
    ...(transportOf(language, transport) === "pump" && { hostFunctions: ["python"] }),
    ...(egress !== undefined && { network: egress === "EgressEnabled" ? "open" : "none" }),
  };
}

/** Everything that exists while the executor is started. Creating it sends nothing yet. */
export class OpenPool {
  readonly scratch: ScratchDirectory;
  /** The executor's file in the session. */
  readonly logName: string;
  /** The directory of the functions' module, as the session names it. */
  readonly functionsDirectory: string;
  readonly #settings: PoolSettings;
  readonly #client: PoolClient;
  #language: PoolLanguage;
  #place: SessionPlace | undefined;
  #packages: readonly string[] = [];
  #connected = false;

  constructor(settings: PoolSettings) {
    this.#settings = settings;
    this.#client = new PoolClient(settings);
    this.#language = poolLanguages[settings.poolType ?? "PythonLTS"];
    this.scratch = new ScratchDirectory(settings.id);
    this.logName = logNameOf(settings.id);
    this.functionsDirectory = `/tmp/${this.logName}.functions`;
  }

  get language(): PoolLanguage {
    return this.#language;
  }

  get place(): SessionPlace {
    this.#place ??= this.#makePlace();
    return this.#place;
  }

  get functions(): OfferedFunctions {
    const { functions, functionsModule: module } = this.#settings;
    return { module, directory: this.functionsDirectory, names: functions.map(({ name }) => name) };
  }

  /** How blocks run in this pool. */
  get transport(): Transport {
    return transportOf(this.#language, this.#settings.transport);
  }

  /** Asks for the pool's type, and prepares the session. */
  async connect(signal: AbortSignal): Promise<void> {
    if (this.#settings.version !== olderVersion) await this.#lookAt(signal);
    await this.place.session(signal);
    this.#connected = true;
  }

  /** Names of the session's packages. */
  async packages(): Promise<readonly string[]> {
    const { listPackages } = this.#language;
    if (this.#packages.length === 0 && listPackages !== undefined) {
      const session = await this.place.session();
      const { stdout } = await session.runOwn(listPackages, new AbortController().signal);
      this.#packages = stdout.split("\n").filter((name) => name !== "");
    }
    return this.#packages;
  }

  /** Ends all connections, and the session unless it should be kept. Works on a half-open pool. */
  async close(keepSession: boolean): Promise<void> {
    try {
      if (keepSession && this.#connected) await this.place.current.leave(AbortSignal.timeout(shortPatienceMs));
      await this.#client.settle(shortPatienceMs);
      if (this.#connected) {
        if (!keepSession) await this.place.current.end();
      } else if (this.#place && !(keepSession && this.#hasGivenSession())) {
        await this.#place.current.end(AbortSignal.timeout(shortPatienceMs)).catch(() => {});
      }
    } finally {
      await this.#client.close();
      await this.scratch.remove();
    }
  }

  /** Whether the session is the one that the user named: it may have existed before this executor. */
  #hasGivenSession(): boolean {
    return this.#settings.sessionId !== undefined && this.#place?.identifier === this.#settings.sessionId;
  }

  async #lookAt(signal: AbortSignal): Promise<void> {
    const { version, poolType, sessionId } = this.#settings;
    const query = { "api-version": version, identifier: sessionId ?? this.#settings.id };
    const call = { method: "GET", path: ["metadata"], query, repeatable: true, signal } as const;
    const metadata = await this.#client.json(call, metadataSchema).catch((error: unknown): PoolMetadata => {
      // A pool without this call can still run code, if the user sets `poolType`.
      const unknownCall = error instanceof ServiceError && error.status === 404 && !error.isCapacity;
      if (unknownCall && poolType !== undefined) return { poolType, packages: [] };
      throw error;
    });
    const type = poolType ?? metadata.poolType;
    if (type === undefined) {
      throw new InvalidInputError("The pool's metadata does not say what its sessions run", {
        remedy: "Set the option `poolType`.",
      });
    }
    this.#language = poolLanguages[type];
    if (this.#settings.transport === "pump" && this.transport !== "pump") {
      throw new InvalidInputError(`The option \`transport\` is "pump", but sessions of this pool run ${type}`, {
        remedy: "Leave `transport` out, or use a pool of type PythonLTS.",
      });
    }
    this.#packages = metadata.packages;
  }

  #makePlace(): SessionPlace {
    const settings = {
      client: this.#client,
      version: this.#settings.version,
      language: this.#language,
      logName: this.logName,
      functions: this.functions,
      callsDirectory: this.transport === "pump" ? `/tmp/${this.logName}.calls` : undefined,
    };
    return new SessionPlace(settings, this.scratch, this.#settings.sessionId);
  }
}
