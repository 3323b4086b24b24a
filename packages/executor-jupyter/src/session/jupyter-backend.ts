import { randomUUID } from "node:crypto";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, FencedError } from "@fenced/core";
import {
  type Backend,
  type BackendFiles,
  DirectoryFiles,
  type Opening,
  type PlaceEnd,
  PlaceGone,
} from "@fenced/executor-kit";
import { DisplayBoard } from "@fenced/executor-kit/displays";
import { type LeftSession, newAddress, sessionHasEnded, sessionToJson } from "@fenced/executor-kit/supervisor";
import { ContentsFiles } from "../files/contents-files.ts";
import { kernelFiles } from "../files/kernel-files.ts";
import type { KernelLinkOptions } from "../kernel/kernel-link.ts";
import { kernelDied, KernelLostError } from "../kernel/kernel-request.ts";
import { Kernel } from "../kernel/kernel.ts";
import { deleteKernel, findKernel, kernelLanguage, restartKernel, startKernel } from "../kernel/kernels.ts";
import {
  type HelperReport,
  KernelAbandoned,
  type KeepSettings,
  notKept,
  PythonHelper,
} from "../python/python-helper.ts";
import { makeHostDirectory, removeHostDirectory } from "../servers/host-directory.ts";
import type { ServerLease } from "../servers/jupyter-server.ts";
import { ServerClient } from "../servers/server-client.ts";
import { adopt, connectKept, doesNotAnswer, endKeeper, type KeptKernel } from "./kept-kernel.ts";
import { type KernelLeft, type KernelPast, KernelPlace, type LiveKernel } from "./kernel-place.ts";
import type { LeftKernel } from "./left-kernel.ts";
import type { SessionSettings } from "./session-settings.ts";

/** Milliseconds to wait for a new kernel's first answer before trying another kernel. */
const firstReadyMs = 30_000;
/** The same for the last kernel that is tried. */
const lastReadyMs = 120_000;
/** Milliseconds for which a server starts a kernel again that its session's keeper ends each time. */
const startedAgainMs = 30_000;
/** Milliseconds between two looks whether it has given up. */
const lookMs = 500;

/** A lease on a server and a workspace there, in which one kernel after another is started. */
export class JupyterBackend implements Backend<KernelPlace> {
  readonly #settings: SessionSettings;
  readonly #displays: DisplayBoard;
  #lease: ServerLease;
  #client: ServerClient;
  /** The files, if they are reached without a kernel. */
  #files: BackendFiles | undefined;
  /** The directory of a kernel other than Python, where only the contents API reaches it. */
  #contents: ContentsFiles | undefined;
  /** The workspace as the kernel names it, once it is known. */
  #workspace: string | undefined;
  /** Deleted with the session. */
  #ownWorkspace = false;
  /** The session to connect to, until that has been done. */
  #left: LeftKernel | undefined;
  /** The keeper of the last kernel, which has its files. */
  #lastKeeper: string | undefined;
  /** It waits for the next kernel. */
  #isWaiting = false;

  private constructor(settings: SessionSettings, lease: ServerLease, displays: DisplayBoard) {
    this.#settings = settings;
    this.#lease = lease;
    this.#client = new ServerClient(lease.address);
    this.#displays = displays;
    this.#left = settings.left;
  }

  /** Acquires the server. */
  static async create(settings: SessionSettings, signal: AbortSignal): Promise<JupyterBackend> {
    const lease = await settings.server.acquire(signal);
    const displays = await DisplayBoard.open(settings.outputDir, lease.bound).catch(async (error: unknown) => {
      await lease.release();
      throw error;
    });
    return new JupyterBackend(settings, lease, displays);
  }

  async open({ signal }: Opening): Promise<KernelPlace> {
    const left = this.#left;
    this.#left = undefined;
    return left ? this.#openLeft(left, signal) : this.#openPatiently(signal);
  }

  /** Deletes what the session created. */
  async close(end?: PlaceEnd): Promise<void> {
    if (this.#isWaiting && end?.isDetached !== true) await this.#endLastKeeper().catch(ignoreUnreachable);
    if (this.#lease.host && this.#ownWorkspace && this.#workspace !== undefined) {
      await removeHostDirectory(this.#workspace);
    }
    if (this.#contents?.isOwn === true) await this.#contents.discard().catch(ignoreUnreachable);
    await this.#displays.close();
    await this.#client[Symbol.asyncDispose]();
    await this.#lease.release();
  }

  /** Ends a kernel, unless it existed before the session and no other one follows. */
  async #leave({ kernel, helper, kept }: LiveKernel, { isReplaced, isDetached, answers }: KernelLeft): Promise<void> {
    if (isDetached === true || kept?.link.isReplaced === true) {
      await kept?.link.detach();
      kernel.disconnect();
      return;
    }
    const removesWorkspace = !isReplaced && this.#ownWorkspace && !this.#lease.host;
    if (answers && !kernel.end) await helper?.demand("end", { remove_workspace: removesWorkspace });
    this.#isWaiting = kept !== undefined && (isReplaced || kernel.end !== undefined);
    // The keeper of a kernel that is replaced keeps its files for the next one.
    const parted = isReplaced ? await kept?.link.detach() : await kept?.link.end();
    kernel.disconnect();
    if (parted === "replaced") return;
    const isGiven = this.#settings.kernelId !== undefined;
    // A server that is gone has no kernels left.
    if (isGiven && !isReplaced) return;
    const done = isGiven ? restartKernel(this.#client, kernel.id) : deleteKernel(this.#client, kernel.id);
    await done.catch(ignoreUnreachable);
  }

  /** Ends a keeper whose kernel is gone. */
  async #endLastKeeper(): Promise<void> {
    if (this.#lastKeeper === undefined) return;
    const signal = AbortSignal.timeout(lastReadyMs);
    const { kernelName: name } = this.#settings;
    const { id } = await startKernel(this.#client, { name, path: "", signal });
    try {
      const kernel = await Kernel.connect({ ...this.#linkOptions(id), readyWithinMs: firstReadyMs }, signal);
      await endKeeper(kernel, this.#lastKeeper);
      kernel.disconnect();
    } finally {
      await deleteKernel(this.#client, id);
    }
  }

  /**
   * Kernels that start at the same time may choose the same ports. The one that loses dies, or never answers on the ports
   * that the server knows, so a second kernel is tried.
   */
  async #openPatiently(signal: AbortSignal, past: KernelPast = {}): Promise<KernelPlace> {
    if (this.#settings.kernelId !== undefined) return this.#open(lastReadyMs, signal, past);
    try {
      return await this.#open(firstReadyMs, signal, past);
    } catch (error) {
      const lost = error instanceof Error && error.cause instanceof KernelLostError;
      if (!lost || signal.aborted) throw error;
      return this.#open(lastReadyMs, signal, past);
    }
  }

  async #open(readyWithinMs: number, signal: AbortSignal, past: KernelPast): Promise<KernelPlace> {
    await this.#renewLease(signal);
    await this.#makeHostWorkspace();
    await this.#makeContentsWorkspace();
    const id = await this.#startKernel(signal);
    let kernel: Kernel | undefined;
    try {
      // Nobody could delete a kernel that the server starts after its answer was abandoned.
      signal.throwIfAborted();
      kernel = await Kernel.connect({ ...this.#linkOptions(id), readyWithinMs }, signal);
      return this.#placeOf(
        this.#settings.keepAliveMs > 0
          ? await this.#equipKept(kernel, past, signal)
          : await this.#equip(kernel, signal),
      );
    } catch (error) {
      kernel?.disconnect();
      if (this.#settings.kernelId === undefined) await deleteKernel(this.#client, id).catch(ignoreUnreachable);
      throw error;
    }
  }

  #linkOptions(kernelId: string): KernelLinkOptions {
    const { reconnectTimeoutMs } = this.#settings;
    return { client: this.#client, kernelId, reconnectTimeoutMs, serverEnded: this.#lease.ended };
  }

  #placeOf(live: LiveKernel): KernelPlace {
    return new KernelPlace(live, {
      settings: this.#settings,
      displays: this.#displays,
      lease: this.#lease,
      leave: (left, how) => this.#leave(left, how),
    });
  }

  /** Connects to a session that an earlier program has left. */
  async #openLeft(left: LeftKernel, signal: AbortSignal): Promise<KernelPlace> {
    const { kernelId, takeOver, key } = left;
    const { keepAliveMs } = this.#settings;
    this.#workspace = left.workspace;
    this.#ownWorkspace = left.ownsWorkspace;
    this.#lastKeeper = left.socket;
    const options = this.#linkOptions(kernelId);
    let kept: KeptKernel | undefined;
    try {
      kept = await connectKept(options, { key, keepAliveMs, takeOver }, signal);
      return this.#placeOf(this.#liveOf(kept, await adopt(kept), left, { isLeft: true }));
    } catch (error) {
      kept?.kernel.disconnect();
      await kept?.link.detach();
      if (!(error instanceof PlaceGone)) throw await this.#notConnected(kernelId, error, signal);
      if (!kept) return this.#openStartedAgain(left, error, signal);
      await deleteKernel(this.#client, kernelId).catch(ignoreUnreachable);
      return this.#openPatiently(signal, { isLeft: true, lostState: `The kernel was replaced: ${error.message}` });
    }
  }

  /** The kernel of a session that an earlier program has left has died, and the server has started it again. */
  async #openStartedAgain(left: LeftKernel, cause: PlaceGone, signal: AbortSignal): Promise<KernelPlace> {
    const { kernelId } = left;
    if (!(await findKernel(this.#client, kernelId, 20_000))) throw sessionHasEnded(this.#where, true, cause);
    const connecting = Kernel.connect({ ...this.#linkOptions(kernelId), readyWithinMs: lastReadyMs }, signal);
    const kernel = await connecting.catch(async (error: unknown) => {
      throw await this.#notConnected(kernelId, error, signal);
    });
    try {
      const lostState = `The kernel is gone: ${kernelDied}`;
      return this.#placeOf(await this.#equipKept(kernel, { isLeft: true, lostState }, signal));
    } catch (error) {
      if (error instanceof KernelAbandoned) await deleteKernel(this.#client, kernelId).catch(ignoreUnreachable);
      throw error instanceof PlaceGone ? sessionHasEnded(this.#where, true, error) : error;
    } finally {
      kernel.disconnect();
    }
  }

  /**
   * The error for a kernel that an earlier program has left and that does not answer. For a while after a session has ended, the server
   * still starts its kernel again, in vain.
   */
  async #notConnected(kernelId: string, error: unknown, signal: AbortSignal): Promise<unknown> {
    signal.throwIfAborted();
    const hasDied = error instanceof Error && error.cause instanceof KernelLostError && error.cause.end.kind === "died";
    if (FencedError.isInstance(error) && !hasDied) return error;
    const end = performance.now() + (hasDied ? startedAgainMs : 0);
    while (await this.#hasKernel(kernelId)) {
      if (performance.now() > end) return FencedError.isInstance(error) ? error : doesNotAnswer(error);
      await sleep(lookMs, undefined, { signal });
    }
    return sessionHasEnded(this.#where, true, new PlaceGone("the server no longer has its kernel"));
  }

  async #hasKernel(kernelId: string): Promise<boolean> {
    const kernel = await findKernel(this.#client, kernelId, 20_000);
    return kernel !== undefined && kernel.executionState !== "dead";
  }

  get #where(): string {
    return `on the Jupyter server at ${this.#client.address.baseUrl}`;
  }

  /** Gives a kernel a keeper, and a connection to that in place of the one that it has. */
  async #equipKept(kernel: Kernel, past: KernelPast, signal: AbortSignal): Promise<LiveKernel> {
    if (kernel.language !== "python") throw notKept(`its language is ${kernel.language}`);
    const { id, keepAliveMs } = this.#settings;
    const address = newAddress();
    const keep = {
      socket: address.socket,
      link: randomUUID(),
      heirOf: this.#lastKeeper,
      isLeft: past.isLeft === true,
      ownsWorkspace: this.#ownWorkspace,
    };
    const { report } = await this.#installHelper(kernel, signal, keep);
    this.#workspace = report.workspace;
    this.#lastKeeper = address.socket;
    this.#isWaiting = true;
    kernel.disconnect();
    const access = { key: address.key, keepAliveMs, takeOver: false, first: keep.link };
    const kept = await connectKept(this.#linkOptions(kernel.id), access, signal);
    this.#isWaiting = false;
    return this.#liveOf(kept, report, { ...address, id }, past);
  }

  #liveOf(
    { kernel, helper, link }: KeptKernel,
    report: HelperReport,
    address: LeftSession,
    past: KernelPast,
  ): LiveKernel {
    const session = sessionToJson(address, {
      kernelId: kernel.id,
      workspace: report.workspace,
      ownsWorkspace: this.#ownWorkspace,
      server: this.#settings.secrets,
    });
    const files = kernelFiles(() => Promise.resolve(helper));
    const { workspace: workspacePath } = report;
    return { kernel, helper, report, files, filesStay: false, workspacePath, kept: { ...past, link, session } };
  }

  /** Gives a kernel its files and, if it is a Python kernel, its helper. */
  async #equip(kernel: Kernel, signal: AbortSignal): Promise<LiveKernel> {
    if (kernel.language !== "python") {
      const files = this.#files ?? ContentsFiles.in(() => this.#client, this.#settings.workDir ?? "");
      return { kernel, files, filesStay: true, workspacePath: this.#workspace };
    }
    const { helper, report } = await this.#installHelper(kernel, signal);
    // If this process knows the directory, it does not rely on a kernel's answer.
    this.#workspace ??= report.workspace;
    const own = { helper, report, workspacePath: report.workspace };
    if (this.#files) return { kernel, files: this.#files, filesStay: true, ...own };
    return { kernel, files: kernelFiles(() => Promise.resolve(helper)), filesStay: false, ...own };
  }

  /** Restarts a server that this program had started and that died. */
  async #renewLease(signal: AbortSignal): Promise<void> {
    if (this.#lease.ended() === undefined) return;
    const old = this.#lease;
    this.#lease = await this.#settings.server.acquire(signal);
    await this.#client[Symbol.asyncDispose]();
    this.#client = new ServerClient(this.#lease.address);
    await old.release();
    // A server that died has left its directory to the next one; one that was stopped has not.
    const isKept = this.#lease.host?.scratch === old.host?.scratch;
    if (this.#ownWorkspace && this.#lease.host && !isKept) this.#workspace = undefined;
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

  async #installHelper(
    kernel: Kernel,
    signal: AbortSignal,
    keep?: KeepSettings,
  ): Promise<{ readonly helper: PythonHelper; readonly report: HelperReport }> {
    const { workDir, kernelId, id, env, functions } = this.#settings;
    const workspace = this.#workspace ?? workDir ?? this.#lease.workspace;
    const createWorkspace = workspace === undefined && kernelId === undefined;
    const scratch = this.#lease.host?.scratch;
    // The keeper of an earlier kernel may still be ending what that has started.
    const mark = keep?.socket ?? id;
    const own = { mark, scratch, workspace, createWorkspace, env, hasFunctions: functions.length > 0, keep };
    const installed = await PythonHelper.install(kernel, own, signal);
    if (createWorkspace) this.#ownWorkspace = true;
    return installed;
  }
}

/** For clean-up on a server that may be gone or may refuse. */
function ignoreUnreachable(error: unknown): void {
  if (!FencedError.isInstance(error)) throw error;
}
