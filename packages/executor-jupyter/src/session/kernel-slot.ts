import path from "node:path";
import {
  BackendUnavailableError,
  canonicalLanguage,
  ExecutorStoppedError,
  FencedError,
  type NetworkDecision,
} from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import { type BackendFiles, DirectoryFiles, type PlaceFacts, renderPythonModule } from "@fenced/executor-kit";
import { DisplayBoard } from "@fenced/executor-kit/displays";
import { ContentsFiles } from "../files/contents-files.ts";
import { kernelFiles } from "../files/kernel-files.ts";
import { kernelLanguages } from "../kernel/kernel-languages.ts";
import { KernelLostError } from "../kernel/kernel-request.ts";
import { Kernel } from "../kernel/kernel.ts";
import { deleteKernel, findKernel, kernelLanguage, restartKernel, startKernel } from "../kernel/kernels.ts";
import { type HelperReport, PythonHelper } from "../python/python-helper.ts";
import { makeHostDirectory, removeHostDirectory } from "../servers/host-directory.ts";
import type { ServerLease } from "../servers/jupyter-server.ts";
import { ServerClient } from "../servers/server-client.ts";
import type { SessionSettings } from "./session-settings.ts";

/** Milliseconds to wait for a new kernel's first answer before trying another kernel. */
const firstReadyMs = 30_000;
/** The same for the last kernel that is tried. */
const lastReadyMs = 120_000;

/** The kernel of a slot. */
export interface SlotKernel {
  readonly kernel: Kernel;
  /** Set if it is a Python kernel, as is what the helper reported when it was installed. */
  readonly helper?: PythonHelper;
  readonly report?: HelperReport;
}

/** A lease on a server and a workspace there, with exactly one kernel at a time: a lost kernel is replaced. */
export class KernelSlot {
  readonly displays: DisplayBoard;
  /** The last kernel that was started, even if it is gone. */
  latest: SlotKernel | undefined;
  /** What is true of it. */
  facts: PlaceFacts = {};
  /** Whether functions were set up, so that a replacement kernel needs their module. */
  functionsLoaded = false;
  readonly #settings: SessionSettings;
  #lease: ServerLease;
  #client: ServerClient;
  #live: Promise<SlotKernel> | undefined;
  #files: BackendFiles | undefined;
  /** The directory of a kernel other than Python, where only the contents API reaches it. */
  #contents: ContentsFiles | undefined;
  /** The workspace as the kernel names it, once it is known. */
  #workspace: string | undefined;
  /** Deleted with the session. */
  #ownWorkspace = false;
  #stateLost = false;
  readonly #closing = new AbortController();
  readonly #discarded = new WeakMap<SlotKernel, Promise<void>>();

  private constructor(settings: SessionSettings, lease: ServerLease, displays: DisplayBoard) {
    this.#settings = settings;
    this.#lease = lease;
    this.#client = new ServerClient(lease.address);
    this.displays = displays;
  }

  /** Acquires the server and starts the first kernel. */
  static async open(settings: SessionSettings, signal: AbortSignal): Promise<KernelSlot> {
    const lease = await settings.server.acquire(signal);
    const displays = await DisplayBoard.open(settings.outputDir, lease.bound).catch(async (error: unknown) => {
      await lease.release();
      throw error;
    });
    const slot = new KernelSlot(settings, lease, displays);
    try {
      await slot.kernel(signal);
      return slot;
    } catch (error) {
      await slot.close();
      throw error;
    }
  }

  /** Starts to collect the requests that the network policy refuses; returns a function that returns them. */
  collectRefusals(): () => readonly NetworkDecision[] {
    return this.#lease.collectRefusals?.() ?? (() => []);
  }

  /** Why a kernel that just ended was killed, if it was for lack of memory. */
  async outOfMemory(): Promise<string | undefined> {
    return this.#lease.outOfMemory?.();
  }

  get files(): BackendFiles {
    if (this.#files) return this.#files;
    throw new BackendUnavailableError("The workspace does not exist yet", { remedy: "Start the executor first." });
  }

  /**
   * The kernel; a new one if the previous one is gone.
   *
   * @throws ExecutorStoppedError if the slot was closed, as it may be in the middle of a file operation.
   */
  async kernel(signal: AbortSignal): Promise<SlotKernel> {
    const current = await this.#live?.catch(() => undefined);
    if (current?.kernel.end) await this.discard(current);
    this.#closing.signal.throwIfAborted();
    const opening = (this.#live ??= this.#openPatiently(signal));
    try {
      return await opening;
    } catch (error) {
      if (this.#live === opening) this.#live = undefined;
      throw error;
    }
  }

  /**
   * Discards a kernel whose variables can no longer be relied on; the next call gets a new one. Idempotent.
   *
   * @param answers - whether it may still answer; if so, it is asked to end what it has started.
   */
  discard(live: SlotKernel, answers = true): Promise<void> {
    const discarded = this.#discarded.get(live) ?? this.#discard(live, answers);
    this.#discarded.set(live, discarded);
    return discarded;
  }

  async #discard(live: SlotKernel, answers: boolean): Promise<void> {
    this.#stateLost = true;
    this.#live = undefined;
    if (!live.kernel.end) this.#settings.onLost("The kernel had to be replaced: it could not be interrupted");
    if (answers && !live.kernel.end) await live.helper?.demand("kill", { everything: true });
    live.kernel.disconnect();
    await this.#endKernel(live);
  }

  /** Whether variables were lost since the last call. */
  takeStateLost(): boolean {
    const lost = this.#stateLost;
    this.#stateLost = false;
    return lost;
  }

  /** Replaces the kernel with a fresh one. */
  async reset(signal: AbortSignal): Promise<void> {
    const live = await this.#live?.catch(() => undefined);
    this.#live = undefined;
    if (live) {
      await this.#leave(live, false);
      await this.#endKernel(live);
    }
    await this.kernel(signal);
    this.#stateLost = false;
  }

  /** Ends the kernel, unless it existed before the session, and deletes what the session created. */
  async close(): Promise<void> {
    const remedy = "Call again if the code should still run; files that it was writing may be incomplete.";
    this.#closing.abort(new ExecutorStoppedError("The executor was stopped during this call", { remedy }));
    const live = await this.#live?.catch(() => undefined);
    this.#live = undefined;
    if (live) {
      await this.#leave(live, this.#ownWorkspace && !this.#lease.host);
      // A server that is gone has no kernels left.
      if (this.#settings.kernelId === undefined) await this.#endKernel(live);
    }
    if (this.#lease.host && this.#ownWorkspace && this.#workspace !== undefined) {
      await removeHostDirectory(this.#workspace);
    }
    if (this.#contents?.isOwn === true) await this.#contents.discard().catch(ignoreUnreachable);
    await this.displays.close();
    await this.#client[Symbol.asyncDispose]();
    await this.#lease.release();
  }

  async #leave({ kernel, helper }: SlotKernel, removeWorkspace: boolean): Promise<void> {
    if (!kernel.end) await helper?.demand("end", { remove_workspace: removeWorkspace });
    kernel.disconnect();
  }

  async #endKernel({ kernel }: SlotKernel): Promise<void> {
    const given = this.#settings.kernelId !== undefined;
    const done = given ? restartKernel(this.#client, kernel.id) : deleteKernel(this.#client, kernel.id);
    await done.catch(ignoreUnreachable);
  }

  /**
   * Kernels that start at the same time may choose the same ports. The one that loses dies, or never answers on the ports
   * that the server knows, so a second kernel is tried.
   */
  async #openPatiently(signal: AbortSignal): Promise<SlotKernel> {
    if (this.#settings.kernelId !== undefined) return this.#open(lastReadyMs, signal);
    try {
      return await this.#open(firstReadyMs, signal);
    } catch (error) {
      const lost = error instanceof Error && error.cause instanceof KernelLostError;
      if (!lost || signal.aborted) throw error;
      return this.#open(lastReadyMs, signal);
    }
  }

  async #open(readyWithinMs: number, signal: AbortSignal): Promise<SlotKernel> {
    await this.#renewLease(signal);
    await this.#makeHostWorkspace();
    await this.#makeContentsWorkspace();
    const id = await this.#startKernel(signal);
    let kernel: Kernel | undefined;
    try {
      // Nobody could delete a kernel that the server starts after its answer was abandoned.
      signal.throwIfAborted();
      const { reconnectTimeoutMs } = this.#settings;
      const link = { client: this.#client, kernelId: id, reconnectTimeoutMs, serverEnded: this.#lease.ended };
      kernel = await Kernel.connect({ ...link, readyWithinMs }, signal);
      kernel.whenEnded(({ reason }) => this.#settings.onLost(`The kernel is gone: ${reason}`));
      if (kernel.language === "python") this.latest = await this.#installHelper(kernel, signal);
      else {
        this.#files ??= ContentsFiles.in(() => this.#client, this.#settings.workDir ?? "");
        this.latest = { kernel };
      }
      this.facts = this.#factsOf(this.latest);
      return this.latest;
    } catch (error) {
      kernel?.disconnect();
      if (this.#settings.kernelId === undefined) await deleteKernel(this.#client, id).catch(ignoreUnreachable);
      throw error;
    }
  }

  #factsOf({ kernel, report }: SlotKernel): PlaceFacts {
    const offered = kernelLanguages(canonicalLanguage(kernel.language), report?.shells ?? []);
    const capabilities = report?.calls === true ? offered : { ...offered, hostFunctions: [] };
    return { capabilities, workspacePath: report?.workspace ?? this.#workspace };
  }

  /** Restarts a server that this program had started and that died. */
  async #renewLease(signal: AbortSignal): Promise<void> {
    if (this.#lease.ended() === undefined) return;
    const old = this.#lease;
    this.#lease = await this.#settings.server.acquire(signal);
    await this.#client[Symbol.asyncDispose]();
    this.#client = new ServerClient(this.#lease.address);
    await old.release();
    // The contents of the old server's directory went with it.
    if (this.#ownWorkspace && this.#lease.host) this.#workspace = undefined;
  }

  async #makeHostWorkspace(): Promise<void> {
    const { host } = this.#lease;
    const { hostWorkDir: workDir, id, kernelId } = this.#settings;
    if (!host || this.#workspace !== undefined || (kernelId !== undefined && workDir === undefined)) return;
    this.#ownWorkspace = workDir === undefined;
    const workspace = workDir ?? path.join(host.scratch, "workspaces", id);
    await makeHostDirectory(workspace);
    this.#workspace = workspace;
    this.#files = new DirectoryFiles(workspace);
  }

  /** The helper of a Python kernel creates its workspace; other kernels need one before they start. */
  async #makeContentsWorkspace(): Promise<void> {
    const { kernelId, kernelName, workDir, id } = this.#settings;
    if (this.#lease.host || this.#contents || kernelId !== undefined) return;
    const language = await kernelLanguage(this.#client, kernelName);
    if (language === undefined || language === "python") return;
    const given = workDir ?? (this.#lease.workspace === undefined ? undefined : "");
    this.#contents = await ContentsFiles.open(() => this.#client, { given, own: `fenced-${id}` });
    this.#files = this.#contents;
  }

  async #startKernel(signal: AbortSignal): Promise<string> {
    const { kernelId, kernelName } = this.#settings;
    if (kernelId !== undefined) {
      const found = await findKernel(this.#client, kernelId, 20_000);
      if (found) return found.id;
      throw new BackendUnavailableError(`The Jupyter server has no kernel with the id ${JSON.stringify(kernelId)}`, {
        remedy: "Start one on the server and pass its id, or leave `kernelId` out.",
      });
    }
    // A server on this host has the file system's root as its root directory. A Python kernel changes to its working
    // directory on its own: a server would start it in the nearest directory that exists.
    const { host } = this.#lease;
    const directory = host ? this.#workspace?.replace(/^\/+/, "") : (this.#contents?.directory ?? "");
    return (await startKernel(this.#client, { name: kernelName, path: directory, signal })).id;
  }

  async #installHelper(kernel: Kernel, signal: AbortSignal): Promise<SlotKernel> {
    const { workDir, kernelId, id, env } = this.#settings;
    const workspace = this.#workspace ?? workDir ?? this.#lease.workspace;
    const createWorkspace = workspace === undefined && kernelId === undefined;
    const modules = this.#functionModules();
    const { helper, report } = await PythonHelper.install(
      kernel,
      { mark: id, scratch: this.#lease.host?.scratch, workspace, createWorkspace, env, modules },
      signal,
    );
    if (createWorkspace) this.#ownWorkspace = true;
    // If this process knows the directory, it does not rely on a kernel's answer.
    this.#workspace ??= report.workspace;
    this.#files ??= kernelFiles(async () => {
      const live = await this.kernel(this.#closing.signal);
      if (live.helper) return live.helper;
      throw new BackendUnavailableError("The kernel is no longer a Python kernel", { remedy: "Call `restart()`." });
    });
    for (const module of Object.keys(modules ?? {})) await untilAborted(helper.ask("load", { module }), signal);
    return { kernel, helper, report };
  }

  /** Name to source; `undefined` if there are no functions. */
  #functionModules(): Readonly<Record<string, string>> | undefined {
    const { functions, functionsModule } = this.#settings;
    if (functions.length === 0) return undefined;
    return this.functionsLoaded ? { [functionsModule]: renderPythonModule(functions) } : {};
  }
}

/** For clean-up on a server that may be gone or may refuse. */
function ignoreUnreachable(error: unknown): void {
  if (!FencedError.isInstance(error)) throw error;
}
