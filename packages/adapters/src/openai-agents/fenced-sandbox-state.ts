import { checkOptions } from "@fenced/core/options";
import { Manifest, type SandboxSessionState } from "@openai/agents-core/sandbox";
import {
  deserializeManifest,
  mergeManifestDelta,
  readOptionalRecord,
  readOptionalStringRecord,
  recordLiveMountCredentialAuthority,
  rehydratePersistedEnvironmentForRuntime,
  sanitizeEnvironmentForPersistence,
  serializeManifestRecord,
} from "@openai/agents-core/sandbox/internal";
import * as z from "zod";

/** What a session is besides its sandbox. */
export interface FencedSandboxState extends SandboxSessionState {
  /** The sandbox's id, as in `SandboxRequest`. */
  readonly sandboxId: string;
  /** Whether its files are kept when the state is serialized. */
  readonly keepsFiles: boolean;
  /** The root in the manifest that the agent has. Until the sandbox is there, nobody knows where its workspace is. */
  readonly givenRoot: string;
  /** The snapshot that was taken last. */
  snapshotId?: string;
}

// The text may come from where others could write: an id may become the name of a directory or a container.
const persisted = z.object({
  sandboxId: z.uuid(),
  keepsFiles: z.boolean(),
  givenRoot: z.string().startsWith("/").max(4096),
  snapshotId: z
    .string()
    .regex(/^[\da-f]{64}$/)
    .exactOptional(),
});

/** Plain JSON, without what is ephemeral. */
export function serializeState(state: FencedSandboxState): Record<string, unknown> {
  const { sandboxId, keepsFiles, givenRoot, snapshotId } = state;
  return {
    sandboxId,
    keepsFiles,
    givenRoot,
    ...(snapshotId === undefined ? {} : { snapshotId }),
    manifest: serializeManifestRecord(state.manifest),
    environment: sanitizeEnvironmentForPersistence(state),
  };
}

/** Ports have other addresses by then, so they are left out. */
export async function deserializeState(state: Record<string, unknown>): Promise<FencedSandboxState> {
  const { sandboxId, keepsFiles, givenRoot, snapshotId } = state;
  const known = { sandboxId, keepsFiles, givenRoot, ...(snapshotId === undefined ? {} : { snapshotId }) };
  const manifest = deserializeManifest(readOptionalRecord(state.manifest));
  const environment = await rehydratePersistedEnvironmentForRuntime(
    manifest,
    readOptionalStringRecord(state.environment),
  );
  return { ...checkOptions(persisted, known, "fencedSandboxClient: the session's state"), manifest, environment };
}

/** Has the manifest say that the workspace is somewhere else. */
export function moveRoot(state: Pick<FencedSandboxState, "manifest">, root: string): void {
  const { manifest } = state;
  if (manifest.root === root) return;
  state.manifest = mergeManifestDelta(new Manifest({ root }), manifest);
  recordLiveMountCredentialAuthority(state.manifest, manifest);
}
