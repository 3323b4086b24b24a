import {
  isNoopSnapshotSpec,
  Manifest,
  normalizeSandboxClientCreateArgs,
  type SandboxClient,
  type SandboxClientCreateArgs,
  type SandboxClientOptions,
  type SandboxClientResumeOptions,
  type SandboxSessionSerializationOptions,
  SandboxConfigurationError,
  SandboxSnapshotNotRestorableError,
  SandboxUnsupportedFeatureError,
} from "@openai/agents-core/sandbox";
import type { ExecutorSandbox } from "../executor-sandbox.ts";
import type { ExecutorSandboxesOptions } from "../executor-sandboxes-options.ts";
import { ExecutorSandboxes } from "../executor-sandboxes.ts";
import { FencedSandboxSession } from "./fenced-sandbox-session.ts";
import { deserializeState, type FencedSandboxState, moveRoot, serializeState } from "./fenced-sandbox-state.ts";
import { checkManifest } from "./manifest-entries.ts";
import type { ArchiveLimits } from "./workspace-archive.ts";

/** Fenced's executors as sandboxes of OpenAI Agents. Disposing of it ends all of its sandboxes. */
export interface FencedSandboxClient extends AsyncDisposable, SandboxClient<SandboxClientOptions, FencedSandboxState> {
  readonly backendId: "fenced";
  /**
   * Starts a sandbox with what the manifest lists. Its root becomes the executor's workspace.
   *
   * @throws SandboxUnsupportedFeatureError if the manifest has users, groups, mounts or, with `snapshots`, ephemeral entries.
   */
  create(args?: SandboxClientCreateArgs): Promise<FencedSandboxSession>;
  create(manifest: Manifest): Promise<FencedSandboxSession>;
  /** Keeps the sandbox's files in `snapshots`, if that is set, and returns plain JSON that leads to them. */
  serializeSessionState(
    state: FencedSandboxState,
    options?: SandboxSessionSerializationOptions,
  ): Promise<Record<string, unknown>>;
  deserializeSessionState(state: Record<string, unknown>): Promise<FencedSandboxState>;
  /**
   * Returns to a sandbox that is still there; otherwise starts one with the files of the last snapshot. What ran in it is gone
   * then.
   *
   * @throws SandboxSnapshotNotRestorableError if neither is there.
   */
  resume(state: FencedSandboxState, options?: SandboxClientResumeOptions): Promise<FencedSandboxSession>;
  /** Ends a sandbox, if it is there. */
  delete(state: FencedSandboxState): Promise<void>;
}

/**
 * Makes Fenced's executors the sandboxes of OpenAI Agents JS: `run(agent, input, { sandbox: { client } })`.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * await using client = fencedSandboxClient({ createExecutor: () => new DockerCommandLineCodeExecutor() });
 * const result = await run(new SandboxAgent({ name: "coder" }), "Run the tests.", { sandbox: { client } });
 */
export function fencedSandboxClient(options: ExecutorSandboxesOptions): FencedSandboxClient {
  return new ClientOverExecutors(options);
}

class ClientOverExecutors implements FencedSandboxClient {
  readonly backendId = "fenced";
  readonly #sandboxes: ExecutorSandboxes;
  readonly #maxOutputBytes: number;

  constructor(options: ExecutorSandboxesOptions) {
    this.#sandboxes = new ExecutorSandboxes(options, "fencedSandboxClient");
    this.#maxOutputBytes = options.maxOutputBytes ?? 1_048_576;
  }

  async create(args?: SandboxClientCreateArgs | Manifest): Promise<FencedSandboxSession> {
    const { manifest, snapshot, options = {}, archiveLimits } = normalizeSandboxClientCreateArgs(args);
    if (Object.keys(options).length > 0) {
      throw new SandboxUnsupportedFeatureError(
        "A sandbox's options are those of its executor. Leave out `options`, and set them in `createExecutor`.",
      );
    }
    const keepsFiles = this.#sandboxes.hasSnapshots && snapshot === undefined;
    if (snapshot !== undefined && !isNoopSnapshotSpec(snapshot)) {
      throw new SandboxUnsupportedFeatureError(
        "Snapshots are kept in a store of @fenced/checkpoints. Leave out `snapshot`, and set the client's option `snapshots`.",
      );
    }
    checkManifest(manifest, { keepsFiles });
    const sandbox = await this.#sandboxes.create();
    try {
      checkRoot(manifest, sandbox);
      const empty = new Manifest({ root: sandbox.root });
      const state = { sandboxId: sandbox.id, keepsFiles, givenRoot: manifest.root, manifest: empty };
      const session = this.#session(sandbox, state, archiveLimits);
      await session.applyManifest(manifest);
      return session;
    } catch (error) {
      await this.#sandboxes.end(sandbox.id);
      throw error;
    }
  }

  async serializeSessionState(
    state: FencedSandboxState,
    { preserveOwnedSession = false }: SandboxSessionSerializationOptions = {},
  ): Promise<Record<string, unknown>> {
    const sandbox = this.#known(state);
    if (sandbox && state.keepsFiles) state.snapshotId = await this.#sandboxes.snapshot(sandbox);
    // The framework only goes on with a state, serialized or of a session that waits, if its root is that of the agent's manifest.
    // It reads the state right after this; a session that does not wait then gets its own root back.
    moveRoot(state, state.givenRoot);
    if (sandbox && !preserveOwnedSession) setImmediate(() => moveRoot(state, sandbox.root));
    return serializeState(state);
  }

  deserializeSessionState(state: Record<string, unknown>): Promise<FencedSandboxState> {
    return deserializeState(state);
  }

  /** Whether a state is of use once its sandbox has ended. */
  canPersistOwnedSessionState({ keepsFiles }: FencedSandboxState): boolean {
    return keepsFiles;
  }

  /** Whether a session can go on that has waited. It gets its own root back. */
  canReusePreservedOwnedSession(state: FencedSandboxState): boolean {
    const sandbox = this.#known(state);
    if (sandbox) moveRoot(state, sandbox.root);
    return sandbox !== undefined;
  }

  async resume(
    state: FencedSandboxState,
    { archiveLimits }: SandboxClientResumeOptions = {},
  ): Promise<FencedSandboxSession> {
    const sandbox = (await this.#sandboxes.find(state.sandboxId)) ?? (await this.#restored(state));
    const here = { ...state };
    moveRoot(here, sandbox.root);
    return this.#session(sandbox, here, archiveLimits);
  }

  delete({ sandboxId }: FencedSandboxState): Promise<void> {
    return this.#sandboxes.end(sandboxId);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#sandboxes[Symbol.asyncDispose]();
  }

  #known({ sandboxId }: FencedSandboxState): ExecutorSandbox | undefined {
    return this.#sandboxes.list().find(({ id }) => id === sandboxId);
  }

  async #restored({ sandboxId, snapshotId }: FencedSandboxState): Promise<ExecutorSandbox> {
    if (snapshotId !== undefined) return this.#sandboxes.create(sandboxId, { snapshot: snapshotId });
    throw new SandboxSnapshotNotRestorableError(
      "The sandbox of this run has ended, and its files were not kept. Start the run again; to go on where a run was interrupted, set `snapshots` to a store of @fenced/checkpoints, or `resumeExecutor`.",
    );
  }

  #session(sandbox: ExecutorSandbox, state: FencedSandboxState, archiveLimits: ArchiveLimits): FencedSandboxSession {
    return new FencedSandboxSession({
      sandbox,
      state,
      maxOutputBytes: this.#maxOutputBytes,
      archiveLimits,
      isOpen: () => this.#known(state) === sandbox,
      end: () => this.#sandboxes.end(sandbox),
    });
  }
}

/** Where the workspace is, the executor decides. The framework's default stands for wherever that is. */
function checkRoot({ root }: Manifest, sandbox: ExecutorSandbox): void {
  if (root === sandbox.root || root === new Manifest().root) return;
  throw new SandboxConfigurationError(
    `The workspace is at ${sandbox.root}, not at ${root}. Leave out the manifest's \`root\`, or have the executor put its workspace there: \`workspacePath\` of containers.`,
  );
}
