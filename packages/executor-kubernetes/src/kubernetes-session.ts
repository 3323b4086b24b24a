import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  ExecutorStoppedError,
  InvalidInputError,
  type ExecutorCapabilities,
  type FunctionWithRequirements,
} from "@fenced/core";
import {
  type BackendFiles,
  type BackendSession,
  blockEnvironment,
  blockSource,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  commandLineCapabilities,
  findPlaceLanguages,
  type FunctionPlaces,
  functionVariables,
  hostFunctionLanguages,
  type LanguageCommand,
  type PlaceLanguages,
  programsOf,
  RemoteFiles,
} from "@fenced/executor-kit";
import { SupervisedFiles } from "@fenced/executor-kit/supervisor";
import { ApiClient } from "./cluster/api-client.ts";
import { findCluster } from "./cluster/kubeconfig.ts";
import type { KubernetesExecutorOptions } from "./kubernetes-executor-options.ts";
import { openPod } from "./pod/open-pod.ts";
import { PodClient } from "./pod/pod-client.ts";
import { defaultImage, workspacePath } from "./pod/pod-manifest.ts";
import type { RunningPod } from "./pod/running-pod.ts";
import { sweepEnded } from "./pod/sweep-ended.ts";

/** What a session is made for. */
export interface SessionRequest {
  readonly options: KubernetesExecutorOptions;
  /** The executor's id. */
  readonly id: string;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** Languages whose command the user gave. */
  readonly givenLanguages: ReadonlySet<string>;
  /** The pod was lost and replaced: all that was in it is gone. */
  readonly onReplaced: () => void;
  /** The pod cannot be used any more: all that was in it is gone. */
  readonly onLost: (reason: string) => void;
}

/** A pod and what blocks find in it. */
interface ReadyPod {
  readonly pod: RunningPod;
  readonly languages: PlaceLanguages;
  readonly files: BackendFiles;
}

/** The variable that all blocks of an executor have. */
const sessionMark = "FENCED_SESSION";

/** Everything that exists while the executor is started. A pod that is lost is replaced for the next block, by an empty one. */
export class KubernetesSession implements BackendSession {
  readonly #request: SessionRequest;
  readonly #api: ApiClient;
  readonly #client: PodClient;
  readonly #closing = new AbortController();
  /** Its own files in the workspace. */
  readonly #filePrefix: string;
  #current: ReadyPod | undefined;
  #opening: Promise<ReadyPod> | undefined;
  #hasPackage: boolean;

  private constructor(request: SessionRequest) {
    const { options, id, functions } = request;
    const cluster = findCluster(options);
    this.#request = request;
    this.#api = new ApiClient(cluster);
    this.#client = new PodClient(this.#api, options.namespace ?? cluster.namespace ?? "default");
    this.#filePrefix = `.fenced-${id.slice(0, 8)}-`;
    this.#hasPackage = functions.some(({ language }) => language === "javascript");
  }

  /** Finds the cluster, and makes the first pod. */
  static async open(request: SessionRequest, signal: AbortSignal): Promise<KubernetesSession> {
    const session = new KubernetesSession(request);
    try {
      await session.#ready(signal);
      sweepEnded(session.#client, session.#api.cluster);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  get capabilities(): Partial<ExecutorCapabilities> {
    if (!this.#current) return {};
    const names = [...this.#current.languages.found.keys()];
    return { ...commandLineCapabilities(names), hostFunctions: hostFunctionLanguages(names) };
  }

  get missing(): ReadonlyMap<string, string> {
    return this.#current?.languages.missing ?? new Map();
  }

  get files(): BackendFiles {
    if (this.#current) return this.#current.files;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  /** The pod that blocks run in now. */
  get podName(): string | undefined {
    return this.#current?.pod.name;
  }

  functionPlaces(): Omit<FunctionPlaces, "owner"> {
    return {
      python: `${this.#directory}/functions`,
      commands: `${this.#directory}/bin`,
      pythonPackages: `${this.#directory}/packages`,
      javascript: workspacePath,
    };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { pod } = await this.#ready(this.#closing.signal);
    this.#hasPackage = true;
    return pod.supervisor.openCalls(accept);
  }

  async *run(block: BlockRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { pod, languages, files } = await this.#ready(block.signal);
    const language = languages.found.get(block.language);
    if (!language) {
      throw new InvalidInputError(`No command runs ${block.language}`, { remedy: "Restart the executor." });
    }
    const { filename } = block;
    const content = blockSource(block.language, block.code);
    if (filename !== undefined) await files.write(filename, content);
    const name = filename ?? `${this.#filePrefix}${randomUUID().slice(0, 12)}.${language.extension}`;
    const keep = this.#request.options.cleanupTempFiles === false;
    const end = yield* pod.supervisor.run({
      argv: [...language.command, `${workspacePath}/${name}`],
      env: this.#variables(block),
      ...(filename === undefined ? { file: { name, content, keep } } : {}),
      ...(block.stdin === undefined ? {} : { stdin: block.stdin }),
      signal: block.signal,
    });
    if (end.outOfMemory) yield { type: "stderr", data: memorySentence(this.#request.options) };
    return { exitCode: end.exitCode, endedAt: performance.now() };
  }

  async repair(signal: AbortSignal): Promise<void> {
    await this.#ready(signal);
  }

  async reset(signal: AbortSignal): Promise<void> {
    const { pod } = await this.#ready(signal);
    try {
      await pod.supervisor.reset();
    } catch {
      // It broke down just now: a new one has no processes either.
      await pod.end().catch(() => {});
      this.#current = undefined;
      await this.#ready(signal);
      this.#request.onReplaced();
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(stopped());
    await this.#opening?.catch(() => {});
    const current = this.#current;
    this.#current = undefined;
    try {
      await current?.pod.end();
    } finally {
      this.#api.close();
    }
  }

  /** A directory of the session in the pod. */
  get #directory(): string {
    return `/tmp/fenced-${this.#request.id.slice(0, 8)}`;
  }

  /** The pod, a new one if the last one is lost. */
  async #ready(signal: AbortSignal): Promise<ReadyPod> {
    if (this.#closing.signal.aborted) throw stopped();
    if (this.#current && !this.#current.pod.lost) return this.#current;
    this.#opening ??= this.#open(AbortSignal.any([signal, this.#closing.signal])).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(signal: AbortSignal): Promise<ReadyPod> {
    const { options, id, table, givenLanguages, onReplaced, onLost } = this.#request;
    const old = this.#current;
    await old?.pod.end().catch(() => {});
    const pod = await openPod(
      {
        options,
        client: this.#client,
        name: `fenced-${id.slice(0, 8)}-${randomUUID().slice(0, 12)}`,
        owner: id,
        directory: this.#directory,
        programs: programsOf(table),
      },
      signal,
    );
    const image = { name: `the image ${options.image ?? defaultImage}`, remedy: "use an image that has it" };
    const languages = findPlaceLanguages(table, givenLanguages, pod.inventory, image);
    this.#current = { pod, languages, files: this.#filesOf(pod) };
    this.#keepWarm(this.#current);
    pod.whenLost(onLost);
    if (old) onReplaced();
    return this.#current;
  }

  #filesOf({ inventory }: RunningPod): BackendFiles {
    const access = new SupervisedFiles({
      workspace: workspacePath,
      python: inventory.programs.get("python3") ?? inventory.programs.get("python") ?? "python3",
      filePrefix: this.#filePrefix,
      supervisor: async () => (await this.#ready(this.#closing.signal)).pod.supervisor,
    });
    const packages = `node_modules/${this.#request.functionsModule}/`;
    return new RemoteFiles(
      access,
      (file) => file.startsWith(this.#filePrefix) || (this.#hasPackage && file.startsWith(packages)),
    );
  }

  #keepWarm({ pod, languages }: ReadyPod): void {
    const { warm = false, env = {} } = this.#request.options;
    const [python, ...words] = languages.found.get("python")?.command ?? [];
    // Where blocks are not run by an interpreter alone, none waits.
    if (warm === false || python === undefined || words.length > 0) return;
    pod.supervisor.keepWarm({ python, ...warm, env: this.#variables({ env }) });
  }

  #variables({ env, hostCalls }: Pick<BlockRun, "env" | "hostCalls">): Record<string, string> {
    const hasFunctions = this.#request.functions.length > 0 || hostCalls !== undefined;
    return {
      ...blockEnvironment,
      ...env,
      ...(hasFunctions ? functionVariables(this.functionPlaces(), hostCalls, env, ":") : {}),
      [sessionMark]: this.#request.id,
    };
  }
}

/** What a block is told that ran out of memory. */
function memorySentence({ resources }: KubernetesExecutorOptions): string {
  const limit = resources === undefined ? "1Gi" : resources.limits?.["memory"];
  const what = limit === undefined ? "the memory of its node" : `the ${limit} of memory of its pod`;
  return `\nThe block was killed because ${what} was used up. Process less data at a time.\n`;
}

function stopped(): ExecutorStoppedError {
  return new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." });
}
