import { rm } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError, ExecutorStoppedError, type WorkspaceFiles } from "@fenced/core";
import { DirectoryFiles } from "@fenced/executor-kit";
import { DisplayBoard } from "../displays/display-board.ts";
import { DisplayFiles } from "../displays/display-files.ts";
import { ContentsFiles } from "../files/contents-files.ts";
import { KernelFiles } from "../files/kernel-files.ts";
import { KernelLostError } from "../kernel/kernel-end.ts";
import { deleteKernel, findKernel, kernelLanguage, restartKernel, startKernel } from "../kernel/kernels.ts";
import { RunningKernel } from "../kernel/running-kernel.ts";
import { PythonHelper } from "../python/python-helper.ts";
import { ignoreUnreachable } from "../servers/ignore-unreachable.ts";
import type { ServerLease } from "../servers/jupyter-server.ts";
import { ServerClient } from "../servers/server-client.ts";
import { openContentsWorkspace, type ContentsWorkspace } from "./contents-workspace.ts";
import { makeHostDirectory } from "./host-directory.ts";
import type { LiveKernel } from "./live-kernel.ts";
import type { SessionSettings } from "./session-settings.ts";

/** What is open while an executor is started: a hold on a server, a kernel, a workspace. */
export class JupyterSession {
  readonly displays: DisplayBoard;
  readonly #settings: SessionSettings;
  readonly #displayFiles: DisplayFiles;
  #lease: ServerLease;
  #client: ServerClient;
  #live: Promise<LiveKernel> | undefined;
  #files: WorkspaceFiles | undefined;
  /** The directory of a kernel other than Python, where only the contents API reaches it. */
  #contents: ContentsWorkspace | undefined;
  /** The workspace as the kernel names it, once it is known. */
  #workspace: string | undefined;
  /** Deleted with the session. */
  #ownWorkspace = false;
  #functions = "";
  #language = "";
  #shells: readonly string[] = [];
  #stateLost = false;
  #closed = false;
  readonly #discarded = new WeakMap<LiveKernel, Promise<void>>();

  private constructor(settings: SessionSettings, lease: ServerLease) {
    this.#settings = settings;
    this.#lease = lease;
    this.#client = new ServerClient(lease.address);
    this.#displayFiles = new DisplayFiles(settings.outputDir);
    this.displays = new DisplayBoard(this.#displayFiles);
  }

  /** Takes hold of the server and starts the first kernel. */
  static async open(settings: SessionSettings, signal: AbortSignal): Promise<JupyterSession> {
    const session = new JupyterSession(settings, await settings.server.acquire(signal));
    try {
      await session.kernel(signal);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** The language that the kernel runs. */
  get language(): string {
    return this.#language;
  }

  /** Which shells can run blocks beside the kernel's language. */
  get shells(): readonly string[] {
    return this.#shells;
  }

  /** The directory for function modules, as the kernel names it; empty if it takes none. */
  get functionsDirectory(): string {
    return this.#functions;
  }

  get files(): WorkspaceFiles {
    if (this.#files) return this.#files;
    throw new BackendUnavailableError("The workspace is not there yet", { remedy: "Start the executor first." });
  }

  /**
   * The kernel; a new one, if the one before is gone.
   *
   * @throws ExecutorStoppedError if the session was closed, as it may be in the middle of a file operation.
   */
  async kernel(signal: AbortSignal): Promise<LiveKernel> {
    const current = await this.#live?.catch(() => undefined);
    if (current?.kernel.end) await this.discard(current);
    if (this.#closed) {
      throw new ExecutorStoppedError("The executor was stopped during this call", {
        remedy: "Call again if it is still wanted; what it had written to the workspace may be incomplete.",
      });
    }
    const opening = (this.#live ??= this.#openPatiently(signal));
    try {
      return await opening;
    } catch (error) {
      if (this.#live === opening) this.#live = undefined;
      throw error;
    }
  }

  /** Lets a kernel go whose variables can no longer be relied on; the next call gets another. Once is enough. */
  discard(live: LiveKernel): Promise<void> {
    const discarded = this.#discarded.get(live) ?? this.#discard(live);
    this.#discarded.set(live, discarded);
    return discarded;
  }

  async #discard(live: LiveKernel): Promise<void> {
    this.#stateLost = true;
    this.#live = undefined;
    if (!live.kernel.end) await live.python?.helper.demand("kill", { everything: true });
    live.kernel.disconnect();
    await this.#endKernel(live);
  }

  /** Whether variables were lost since this was asked last. */
  takeStateLost(): boolean {
    const lost = this.#stateLost;
    this.#stateLost = false;
    return lost;
  }

  /** Replaces the kernel by a fresh one. */
  async reset(signal: AbortSignal): Promise<void> {
    const live = await this.#live?.catch(() => undefined);
    this.#live = undefined;
    if (live) {
      if (!live.kernel.end) await live.python?.helper.demand("end", { remove_workspace: false });
      live.kernel.disconnect();
      await this.#endKernel(live);
    }
    await this.kernel(signal);
    this.#stateLost = false;
  }

  /** Ends the kernel, unless it was there before, and deletes what the session made. */
  async close(): Promise<void> {
    this.#closed = true;
    const live = await this.#live?.catch(() => undefined);
    this.#live = undefined;
    if (live) await this.#leave(live);
    if (this.#lease.host && this.#ownWorkspace && this.#workspace !== undefined) {
      await rm(this.#workspace, { recursive: true, force: true, maxRetries: 3 });
    }
    if (this.#contents?.isOwn === true) await this.#contents.files.discard().catch(ignoreUnreachable);
    await this.#displayFiles.close();
    await this.#client[Symbol.asyncDispose]();
    await this.#lease.release();
  }

  async #leave(live: LiveKernel): Promise<void> {
    const removeWorkspace = this.#ownWorkspace && !this.#lease.host;
    if (!live.kernel.end) await live.python?.helper.demand("end", { remove_workspace: removeWorkspace });
    live.kernel.disconnect();
    if (this.#settings.kernelId !== undefined) return;
    // A server that is gone has no kernels any more.
    await deleteKernel(this.#client, live.kernel.id).catch(ignoreUnreachable);
  }

  async #endKernel({ kernel }: LiveKernel): Promise<void> {
    const given = this.#settings.kernelId !== undefined;
    const done = given ? restartKernel(this.#client, kernel.id) : deleteKernel(this.#client, kernel.id);
    await done.catch(ignoreUnreachable);
  }

  /** Kernels that start at once choose their ports at once, and one of them may lose: it gets a second chance. */
  async #openPatiently(signal: AbortSignal): Promise<LiveKernel> {
    try {
      return await this.#open(signal);
    } catch (error) {
      const died = error instanceof Error && error.cause instanceof KernelLostError;
      if (!died || this.#settings.kernelId !== undefined || signal.aborted) throw error;
      return this.#open(signal);
    }
  }

  async #open(signal: AbortSignal): Promise<LiveKernel> {
    await this.#renewLease(signal);
    await this.#makeHostWorkspace();
    await this.#makeContentsWorkspace();
    const id = await this.#startKernel(signal);
    let kernel: RunningKernel | undefined;
    try {
      // Nobody could delete a kernel that the server has started unheard.
      signal.throwIfAborted();
      kernel = await RunningKernel.connect(
        {
          client: this.#client,
          kernelId: id,
          reconnectTimeoutMs: this.#settings.reconnectTimeoutMs,
          serverEnded: this.#lease.ended,
        },
        signal,
      );
      this.#language = kernel.language;
      return kernel.language === "python" ? await this.#installHelper(kernel) : await this.#withoutHelper(kernel);
    } catch (error) {
      kernel?.disconnect();
      if (this.#settings.kernelId === undefined) await deleteKernel(this.#client, id).catch(ignoreUnreachable);
      throw error;
    }
  }

  /** A server of this program that died is started again. */
  async #renewLease(signal: AbortSignal): Promise<void> {
    if (this.#lease.ended() === undefined) return;
    const old = this.#lease;
    this.#lease = await this.#settings.server.acquire(signal);
    await this.#client[Symbol.asyncDispose]();
    this.#client = new ServerClient(this.#lease.address);
    await old.release();
    // What lay in the old server's directory went with it.
    if (this.#ownWorkspace && this.#lease.host) this.#workspace = undefined;
  }

  async #makeHostWorkspace(): Promise<void> {
    const { host } = this.#lease;
    const { workDir, id, kernelId } = this.#settings;
    if (!host || this.#workspace !== undefined || (kernelId !== undefined && workDir === undefined)) return;
    this.#ownWorkspace = workDir === undefined;
    const workspace = workDir === undefined ? path.join(host.scratch, "workspaces", id) : path.resolve(workDir);
    await makeHostDirectory(workspace);
    this.#workspace = workspace;
    this.#files = new DirectoryFiles(workspace);
  }

  /** Where a Python kernel works, its helper sees to. */
  async #makeContentsWorkspace(): Promise<void> {
    const { kernelId, kernelName, workDir, id } = this.#settings;
    if (this.#lease.host || this.#contents || kernelId !== undefined) return;
    const language = await kernelLanguage(this.#client, kernelName);
    if (language === undefined || language === "python") return;
    const given = workDir ?? (this.#lease.workspace === undefined ? undefined : "");
    this.#contents = await openContentsWorkspace(() => this.#client, { given, own: `fenced-${id}` });
    this.#files = this.#contents.files;
  }

  async #startKernel(signal: AbortSignal): Promise<string> {
    const { kernelId, kernelName } = this.#settings;
    if (kernelId !== undefined) {
      const found = await findKernel(this.#client, kernelId, 20_000);
      if (found) return found.id;
      throw new BackendUnavailableError(`The Jupyter server has no kernel with the id ${JSON.stringify(kernelId)}`, {
        remedy: "Start one on the server and give its id, or leave `kernelId` out.",
      });
    }
    // The server of this host has the file system's root for its root directory. A Python kernel goes from the root
    // directory to where it works by itself: a server would start it in the nearest directory that is there.
    const { host } = this.#lease;
    const directory = host ? this.#workspace?.replace(/^\/+/, "") : (this.#contents?.files.directory ?? "");
    const place = directory === undefined ? {} : { path: directory };
    return (await startKernel(this.#client, { name: kernelName, signal, ...place })).id;
  }

  async #installHelper(kernel: RunningKernel): Promise<LiveKernel> {
    const { workDir, kernelId, id, env } = this.#settings;
    const workspace = this.#workspace ?? workDir ?? this.#lease.workspace;
    const modules = this.#settings.modules();
    const { helper, report } = await PythonHelper.install(kernel, {
      mark: id,
      ...(this.#lease.host ? { scratch: this.#lease.host.scratch } : {}),
      ...(workspace === undefined ? {} : { workspace }),
      createWorkspace: workspace === undefined && kernelId === undefined,
      env,
      ...(modules ? { modules } : {}),
    });
    if (workspace === undefined && kernelId === undefined) this.#ownWorkspace = true;
    this.#workspace = report.workspace;
    this.#shells = report.shells;
    this.#functions = report.functions;
    this.#files ??= this.#filesThroughKernel();
    for (const module of Object.keys(modules ?? {})) await helper.ask("load", { module });
    return { kernel, python: { helper, report } };
  }

  #filesThroughKernel(): KernelFiles {
    const forever = new AbortController().signal;
    return new KernelFiles(async () => {
      const { python } = await this.kernel(forever);
      if (python) return python.helper;
      throw new BackendUnavailableError("The kernel is no Python kernel any more", { remedy: "Restart the executor." });
    });
  }

  async #withoutHelper(kernel: RunningKernel): Promise<LiveKernel> {
    this.#files ??= new ContentsFiles(() => this.#client, this.#settings.workDir ?? "");
    return { kernel };
  }
}
