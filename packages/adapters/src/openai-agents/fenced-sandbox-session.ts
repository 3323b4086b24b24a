import { posix } from "node:path";
import { FencedError, FileNotFoundError, type FileStat } from "@fenced/core";
import { UserError, type Editor, type ToolOutputImage } from "@openai/agents-core";
import {
  type ExecCommandArgs,
  type ExposedPortEndpoint,
  type ListDirectoryArgs,
  Manifest,
  type MaterializeEntryArgs,
  normalizeExposedPort,
  type ReadFileArgs,
  recordExposedPortEndpoint,
  type SandboxDirectoryEntry,
  type SandboxExecResult,
  SandboxExecTransportError,
  SandboxExposedPortUnavailableError,
  SandboxRuntimeError,
  type SandboxSession,
  SandboxUnsupportedFeatureError,
  SandboxWorkspaceReadNotFoundError,
  type ViewImageArgs,
  type WorkspaceArchiveData,
  type WorkspaceArchiveOptions,
  type WriteStdinArgs,
  validateSandboxArchiveLimits,
} from "@openai/agents-core/sandbox";
import {
  elapsedSeconds,
  formatExecResponse,
  imageOutputFromBytes,
  MAX_VIEW_IMAGE_BYTES,
  mergeManifestDelta,
  truncateOutput,
  withExclusiveSandboxManifestMutation,
} from "@openai/agents-core/sandbox/internal";
import type { ExecutorSandbox } from "../executor-sandbox.ts";
import type { FencedSandboxState } from "./fenced-sandbox-state.ts";
import { checkManifest, refuseUser, writeEntries } from "./manifest-entries.ts";
import { PatchEditor } from "./patch-editor.ts";
import { RunningCommand } from "./running-command.ts";
import { type ArchiveLimits, packWorkspace, unpackWorkspace } from "./workspace-archive.ts";

/** As in the framework's own sandboxes. */
const commandYieldMs = 10_000;
const inputYieldMs = 250;
/** Each may keep its last output. */
const maxCommands = 32;
const maxFileBytes = 67_108_864;
const terminalSize = { columns: 120, rows: 40 };
// Models write for Bash. Its login shell would undo the executor's PATH, so it is only used where somebody names a shell.
const anyShell = 'if command -v bash > /dev/null; then exec bash -c "$0"; fi; exec /bin/sh -c "$0"';

/** What a session is made of. */
export interface SessionParts {
  readonly sandbox: ExecutorSandbox;
  readonly state: FencedSandboxState;
  readonly maxOutputBytes: number;
  readonly archiveLimits: ArchiveLimits;
  readonly isOpen: () => boolean;
  /** Ends the sandbox. */
  readonly end: () => Promise<void>;
}

/** An executor as a sandbox of OpenAI Agents. */
export class FencedSandboxSession implements SandboxSession<FencedSandboxState> {
  readonly state: FencedSandboxState;
  readonly #parts: SessionParts;
  readonly #sandbox: ExecutorSandbox;
  readonly #commands = new Map<number, RunningCommand>();
  #lastId = 0;
  #archiveLimits: ArchiveLimits;
  #ended: Promise<void> | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#sandbox = parts.sandbox;
    this.state = parts.state;
    this.#archiveLimits = parts.archiveLimits;
  }

  /** Whether the sandbox is there. If its place was lost, the next call opens another one with the same files. */
  async running(): Promise<boolean> {
    return this.#ended === undefined && this.#parts.isOpen();
  }

  /** Runs a command until it ends, or `yieldTimeMs` is over; then it goes on, and `writeStdin` knows it by `sessionId`. */
  async exec(args: ExecCommandArgs): Promise<SandboxExecResult> {
    const begin = Date.now();
    const command = await this.#start(args, false);
    await command.wait(args.yieldTimeMs ?? commandYieldMs);
    const [stdout, stderr] = [command.stdout.take(command.hasEnded), command.stderr.take(command.hasEnded)];
    return { ...this.#taken(command, begin, args.maxOutputTokens), stdout, stderr };
  }

  /** Does the same as `exec`, and tells it to a model; both outputs are in one, in order. */
  async execCommand(args: ExecCommandArgs): Promise<string> {
    const begin = Date.now();
    const command = await this.#start(args, true);
    await command.wait(args.yieldTimeMs ?? commandYieldMs);
    return formatExecResponse(this.#taken(command, begin, args.maxOutputTokens));
  }

  /** Whether commands can run on a terminal, and models can write to them. */
  supportsPty(): boolean {
    return this.#sandbox.executor.capabilities.terminals === true;
  }

  async writeStdin({ sessionId, chars = "", yieldTimeMs, maxOutputTokens }: WriteStdinArgs): Promise<string> {
    const begin = Date.now();
    const command = this.#commands.get(sessionId);
    if (!command) {
      const output = `write_stdin failed: session not found: ${sessionId}`;
      return formatExecResponse({ output, wallTimeSeconds: 0, exitCode: 1 });
    }
    await command.write(chars);
    await command.wait(yieldTimeMs ?? inputYieldMs);
    return formatExecResponse(this.#taken(command, begin, maxOutputTokens, sessionId));
  }

  createEditor(runAs?: string): Editor {
    refuseUser(runAs ?? "");
    return new PatchEditor(this.#sandbox);
  }

  async viewImage({ path, runAs }: ViewImageArgs): Promise<ToolOutputImage> {
    refuseUser(runAs ?? "");
    // The words by which the framework's tool knows what to tell the model.
    const found = await this.#stat(path);
    if (found === undefined) throw new UserError(`Image file not found: ${path}`);
    if (found.type !== "file") throw new UserError(`Image path is not a file: ${path}`);
    return imageOutputFromBytes(path, await this.#sandbox.readStart(path, MAX_VIEW_IMAGE_BYTES + 1));
  }

  /** Reads a file; of a longer one than `maxBytes`, the beginning. Without `maxBytes`, it may have 64 MiB. */
  async readFile({ path, runAs, maxBytes }: ReadFileArgs): Promise<Uint8Array> {
    refuseUser(runAs ?? "");
    const bytes = await this.#sandbox.readStart(path, maxBytes ?? maxFileBytes + 1).catch(missing(path));
    if (maxBytes !== undefined || bytes.length <= maxFileBytes) return bytes;
    throw new SandboxRuntimeError(`${JSON.stringify(path)} has more than ${maxFileBytes} bytes. Set \`maxBytes\`.`);
  }

  /** Lists files and directories, without links. */
  async listDir({ path, runAs }: ListDirectoryArgs): Promise<SandboxDirectoryEntry[]> {
    refuseUser(runAs ?? "");
    const { files } = this.#sandbox.executor;
    const entries = await files
      .list(this.#sandbox.fileAt(path), { recursive: false, directories: true })
      .catch(missing(path));
    return entries.map((entry) => {
      return { name: posix.basename(entry.path), path: entry.path, type: entry.type === "directory" ? "dir" : "file" };
    });
  }

  async pathExists(path: string, runAs?: string): Promise<boolean> {
    refuseUser(runAs ?? "");
    return (await this.#stat(path)) !== undefined;
  }

  async directoryExists(path: string, runAs?: string): Promise<boolean> {
    refuseUser(runAs ?? "");
    return (await this.#stat(path))?.type === "directory";
  }

  async materializeEntry({ path, entry, runAs }: MaterializeEntryArgs): Promise<void> {
    const { root, extraPathGrants } = this.state.manifest;
    const entries = { [this.#sandbox.fileAt(path)]: structuredClone(entry) };
    return this.applyManifest(new Manifest({ root, entries, extraPathGrants }), runAs);
  }

  /** Adds a manifest's entries, environment variables and grants to those of the session. */
  async applyManifest(manifest: Manifest, runAs?: string): Promise<void> {
    refuseUser(runAs ?? "");
    checkManifest(manifest, this.state);
    await withExclusiveSandboxManifestMutation(this.state, async () => {
      const environment = { ...this.state.environment, ...(await manifest.resolveEnvironment()) };
      await writeEntries(this.#sandbox, manifest, environment);
      this.state.environment = environment;
      this.state.manifest = mergeManifestDelta(this.state.manifest, manifest);
    });
  }

  setArchiveLimits(limits?: ArchiveLimits): void {
    validateSandboxArchiveLimits(limits);
    this.#archiveLimits = limits;
  }

  /** Packs all files as a tar archive. It may have as many bytes as `hydrateWorkspace` would take. */
  persistWorkspace(): Promise<Uint8Array> {
    return packWorkspace(this.#sandbox, this.state.manifest, this.#archiveLimits);
  }

  /** Unpacks a tar archive over what is there: all of it or, if it is wrong or too large, nothing. */
  hydrateWorkspace(data: WorkspaceArchiveData, { archiveLimits }: WorkspaceArchiveOptions = {}): Promise<void> {
    return unpackWorkspace(this.#sandbox, data, archiveLimits === undefined ? this.#archiveLimits : archiveLimits);
  }

  /** Where this host reaches a port of the sandbox's programs: on its loopback interface. */
  async resolveExposedPort(port: number): Promise<ExposedPortEndpoint> {
    const wanted = normalizeExposedPort(port);
    const url = await this.#sandbox.url(wanted).catch((cause: unknown) => {
      if (!FencedError.isInstance(cause)) throw cause;
      throw new SandboxExposedPortUnavailableError(cause.message, { cause });
    });
    const { hostname, port: here } = new URL(url);
    return recordExposedPortEndpoint(this.state, { host: hostname, port: Number(here), tls: false }, wanted);
  }

  /** Kills the commands that still run. */
  async stop(): Promise<void> {
    const commands = [...this.#commands.values()];
    this.#commands.clear();
    await Promise.allSettled(commands.map((command) => command.kill()));
  }

  /** Ends the sandbox. */
  close(): Promise<void> {
    this.#commands.clear();
    this.#ended ??= this.#parts.end();
    return this.#ended;
  }

  /** Does the same as `close()`. */
  shutdown(): Promise<void> {
    return this.close();
  }

  /** Does the same as `close()`. */
  delete(): Promise<void> {
    return this.close();
  }

  async #start(args: ExecCommandArgs, merged: boolean): Promise<RunningCommand> {
    const { cmd, workdir = "", shell = "", login = true, tty = false, runAs = "" } = args;
    refuseUser(runAs);
    if (tty && !this.supportsPty()) {
      throw new SandboxUnsupportedFeatureError("This sandbox has no terminals. Run the command without `tty`.");
    }
    this.#makeRoom();
    const started = await this.#sandbox.start({
      command: shell.trim() === "" ? ["/bin/sh", "-c", anyShell, cmd] : [shell, login ? "-lc" : "-c", cmd],
      ...(workdir.trim() === "" ? {} : { cwd: workdir }),
      env: this.state.environment ?? {},
      ...(tty ? { pty: terminalSize } : { merged }),
    });
    const { maxOutputBytes } = this.#parts;
    return new RunningCommand({ started, hasTerminal: tty, takesInput: this.supportsPty(), maxOutputBytes });
  }

  /** What has ended and nobody has asked for is forgotten first. */
  #makeRoom(): void {
    if (this.#commands.size < maxCommands) return;
    const [ended] = [...this.#commands].find(([, command]) => command.hasEnded) ?? [];
    if (ended !== undefined) {
      this.#commands.delete(ended);
      return;
    }
    throw new SandboxRuntimeError(`${maxCommands} commands are still running. End some of them, or wait for them.`);
  }

  /** Takes what a command has printed. While it runs, it is known by `sessionId`, by default a new one. */
  #taken(
    command: RunningCommand,
    begin: number,
    maxOutputTokens: number | undefined,
    sessionId?: number,
  ): Omit<SandboxExecResult, "stdout" | "stderr"> {
    const { hasEnded } = command;
    const { text, originalTokenCount } = truncateOutput(command.output.take(hasEnded), maxOutputTokens);
    const told = {
      output: text,
      wallTimeSeconds: elapsedSeconds(begin),
      ...(originalTokenCount === undefined ? {} : { originalTokenCount }),
    };
    if (!hasEnded) return { ...told, sessionId: sessionId ?? this.#remember(command) };
    if (sessionId !== undefined) this.#commands.delete(sessionId);
    try {
      return { ...told, exitCode: command.exitCode() ?? null };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new SandboxExecTransportError(text === "" ? reason : `${reason}\nOutput before that:\n${text}`, { error });
    }
  }

  #remember(command: RunningCommand): number {
    this.#lastId += 1;
    this.#commands.set(this.#lastId, command);
    return this.#lastId;
  }

  /** `undefined` if there is nothing. */
  async #stat(path: string): Promise<FileStat | undefined> {
    try {
      return await this.#sandbox.executor.files.stat(this.#sandbox.fileAt(path));
    } catch (error) {
      if (error instanceof FileNotFoundError) return undefined;
      throw error;
    }
  }
}

/** Says that something is missing as the framework's capabilities expect it. */
function missing(path: string): (cause: unknown) => never {
  return (cause) => {
    if (!(cause instanceof FileNotFoundError)) throw cause;
    throw new SandboxWorkspaceReadNotFoundError(`There is no ${JSON.stringify(path)} in the workspace.`, { cause });
  };
}
