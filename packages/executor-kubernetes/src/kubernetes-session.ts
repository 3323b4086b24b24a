import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { ExecutorStoppedError, InvalidInputError, type ExecutorCapabilities, type NetworkDecision } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import { EgressProxy } from "@fenced/egress";
import {
  type BackendFiles,
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
  type PlaceLanguages,
  type ProgramRun,
  programsOf,
  RemoteFiles,
} from "@fenced/executor-kit";
import {
  type InterpretBlock,
  type InterpretingSession,
  interpreterProgram,
  outcomeOf,
  type ProgramEnd,
  SessionNetwork,
  type StatefulPlace,
  SupervisedFiles,
  warmPrograms,
} from "@fenced/executor-kit/supervisor";
import { ApiClient } from "./cluster/api-client.ts";
import { findCluster } from "./cluster/kubeconfig.ts";
import { openPod } from "./pod/open-pod.ts";
import { PodClient } from "./pod/pod-client.ts";
import { defaultImage, memorySentence, workspacePath } from "./pod/pod-manifest.ts";
import { podSource } from "./pod/pod-source.ts";
import type { RunningPod } from "./pod/running-pod.ts";
import { sweepIdle } from "./pod/sweep-idle.ts";
import type { SessionRequest } from "./session-request.ts";

/** A pod and what blocks find in it. */
interface ReadyPod {
  readonly pod: RunningPod;
  readonly languages: PlaceLanguages;
  readonly files: BackendFiles;
  /** Variables that tell programs where the proxy is, if there is one. */
  readonly networkVariables: Readonly<Record<string, string>>;
}

/** Milliseconds that an end waits for what is left of other programs' pods. */
const sweepMs = 2000;
/** The variable that all blocks of an executor have. */
const sessionMark = "FENCED_SESSION";

/** Everything that exists while the executor is started. A pod that is lost is replaced for the next block, by an empty one. */
export class KubernetesSession implements InterpretingSession {
  readonly #request: SessionRequest;
  readonly #api: ApiClient;
  readonly #client: PodClient;
  readonly #closing = new AbortController();
  readonly #network: SessionNetwork | undefined;
  /** Its own files in the workspace. */
  readonly #filePrefix: string;
  #current: ReadyPod | undefined;
  #opening: Promise<ReadyPod> | undefined;
  /** Runs in the background. */
  #sweeping: Promise<void> = Promise.resolve();
  #hasPackage: boolean;

  private constructor(request: SessionRequest) {
    const { options, id, functions } = request;
    const cluster = findCluster(options);
    this.#request = request;
    this.#api = new ApiClient(cluster);
    this.#client = new PodClient(this.#api, options.namespace ?? cluster.namespace ?? "default");
    this.#network = SessionNetwork.of(options.network, EgressProxy);
    this.#filePrefix = `.fenced-${id.slice(0, 8)}-`;
    this.#hasPackage = functions.some(({ language }) => language === "javascript");
  }

  /** Finds the cluster, and makes the first pod. */
  static async open(request: SessionRequest, signal: AbortSignal): Promise<KubernetesSession> {
    const session = new KubernetesSession(request);
    try {
      const { pod } = await session.#ready(signal);
      // The cluster's clock was here a moment ago.
      const now = Date.parse(pod.metadata.creationTimestamp ?? "");
      session.#sweeping = sweepIdle(session.#client, session.#api.cluster, now);
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

  async *run(block: BlockRun, interpret?: InterpretBlock): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const ready = await this.#ready(block.signal);
    const { pod, languages, files } = ready;
    const language = languages.found.get(block.language);
    if (!language) {
      throw new InvalidInputError(`No command runs ${block.language}`, { remedy: "Restart the executor." });
    }
    const { filename } = block;
    const content = blockSource(block.language, block.code);
    if (filename !== undefined) await files.write(filename, content);
    const name = filename ?? `${this.#filePrefix}${randomUUID().slice(0, 12)}.${language.extension}`;
    const keep = this.#request.options.cleanupTempFiles === false;
    const refusals = this.#network?.collect();
    let network: readonly NetworkDecision[] | undefined;
    let end: ProgramEnd;
    try {
      const env = this.#variables(block, ready.networkVariables);
      end = yield* (
        interpret?.(env, block.signal) ??
          pod.supervisor.run({
            argv: [...language.command, `${workspacePath}/${name}`],
            env,
            ...(filename === undefined ? { file: { name, content, keep } } : {}),
            ...(block.stdin === undefined ? {} : { stdin: block.stdin }),
            signal: block.signal,
          })
      );
    } finally {
      network = refusals?.();
    }
    if (end.outOfMemory) yield { type: "stderr", data: memorySentence(this.#request.options) };
    return { ...outcomeOf(end), endedAt: performance.now(), ...(network && { network }) };
  }

  async *runProgram(program: ProgramRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { pod, networkVariables } = await this.#ready(program.signal);
    const end = yield* pod.supervisor.run({ ...program, env: this.#variables(program, networkVariables) });
    if (end.outOfMemory) yield { type: "stderr", data: memorySentence(this.#request.options) };
    return { exitCode: end.exitCode };
  }

  async interpreterPlace(signal: AbortSignal): Promise<StatefulPlace> {
    const { pod, languages, networkVariables } = await this.#ready(signal);
    const { warm, env = {} } = this.#request.options;
    const variables = this.#variables({ env }, networkVariables);
    const settings = { env: variables, commands: `${this.#directory}/bin`, warm };
    return { supervisor: pod.supervisor, program: interpreterProgram(languages, settings) };
  }

  get workspacePath(): string {
    return workspacePath;
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

  stopping(): void {
    this.#current?.pod.hurry();
  }

  async close(): Promise<void> {
    this.#closing.abort(stopped());
    await this.#opening?.catch(() => {});
    const current = this.#current;
    this.#current = undefined;
    try {
      await current?.pod.end();
      await within(sweepMs, this.#sweeping);
    } finally {
      await this.#network?.close();
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
    // What is left of it ends by itself, where nobody can delete it.
    const ended = old?.pod.end().catch(() => {});
    if (ended) await untilAborted(ended, signal);
    const name = `fenced-${id.slice(0, 8)}-${randomUUID().slice(0, 12)}`;
    const pool = options.warmPool?.name;
    const pod = await openPod(
      {
        options,
        client: this.#client,
        name,
        source: podSource(this.#client, options, { name, owner: id, api: this.#api }),
        directory: this.#directory,
        programs: programsOf(table),
      },
      signal,
    );
    try {
      const image =
        pool === undefined
          ? { name: `the image ${options.image ?? defaultImage}`, remedy: "use an image that has it" }
          : { name: `the image of the warm pool ${pool}`, remedy: "use an image that has it in its SandboxTemplate" };
      const languages = findPlaceLanguages(table, givenLanguages, pod.inventory, image);
      if ((options.network ?? "open") !== "open") await pod.closeNetwork(signal);
      const networkVariables = (await this.#network?.enter(pod.supervisor)) ?? {};
      this.#current = { pod, languages, files: this.#filesOf(pod), networkVariables };
    } catch (error) {
      await pod.end().catch(() => {});
      throw error;
    }
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

  #keepWarm({ pod, languages, networkVariables }: ReadyPod): void {
    const { warm, stateful, env = {} } = this.#request.options;
    // Hostile code in an interpreter that lives on could wait for those that wait.
    if (stateful === true) return;
    const settings = warmPrograms(languages, warm, this.#variables({ env }, networkVariables));
    if (settings) pod.supervisor.keepWarm(settings);
  }

  #variables(
    { env, hostCalls }: Pick<BlockRun, "env" | "hostCalls">,
    networkVariables: Readonly<Record<string, string>>,
  ): Record<string, string> {
    const hasFunctions = this.#request.functions.length > 0 || hostCalls !== undefined;
    return {
      ...blockEnvironment,
      ...networkVariables,
      ...env,
      ...(hasFunctions ? functionVariables(this.functionPlaces(), hostCalls, env, ":") : {}),
      [sessionMark]: this.#request.id,
    };
  }
}

function stopped(): ExecutorStoppedError {
  return new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." });
}
