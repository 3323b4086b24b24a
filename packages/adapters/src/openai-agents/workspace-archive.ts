import { ByteQueue } from "@fenced/core";
import {
  resolveSandboxArchiveLimits,
  SandboxArchiveError,
  SandboxUnsupportedFeatureError,
  type Manifest,
  type SandboxArchiveLimits,
  type WorkspaceArchiveData,
} from "@openai/agents-core/sandbox";
import type { ExecutorSandbox } from "../executor-sandbox.ts";

const blockBytes = 512;
/** What describes the next member rather than being one. */
const metadataTypes = new Set(["x", "g", "L", "K"]);

/** Limits of the framework: its defaults if there are none, and no limits for `null`. */
export type ArchiveLimits = SandboxArchiveLimits | null | undefined;

/** Packs all files, as an uncompressed tar archive. */
export async function packWorkspace(
  sandbox: ExecutorSandbox,
  manifest: Manifest,
  limits: ArchiveLimits,
): Promise<Uint8Array> {
  const [ephemeral] = manifest.ephemeralPersistencePaths();
  if (ephemeral !== undefined) {
    throw new SandboxUnsupportedFeatureError(
      `The entry ${JSON.stringify(ephemeral)} is ephemeral, but an archive has all files. Make it an environment variable.`,
    );
  }
  const most = resolveSandboxArchiveLimits(limits)?.maxInputBytes ?? Infinity;
  const archive = new ByteQueue();
  for await (const piece of sandbox.executor.files.archive()) {
    archive.add(piece);
    if (archive.length > most) throw tooMuch("bytes", "maxInputBytes", most);
  }
  return archive.take();
}

/** Unpacks such an archive over what is there. */
export async function unpackWorkspace(
  sandbox: ExecutorSandbox,
  data: WorkspaceArchiveData,
  limits: ArchiveLimits,
): Promise<void> {
  const { maxInputBytes, maxMembers, maxExtractedBytes } = resolveSandboxArchiveLimits(limits) ?? {};
  const bytes = typeof data === "string" ? Buffer.from(data) : new Uint8Array(data);
  if (bytes.length > (maxInputBytes ?? Infinity)) throw tooMuch("bytes", "maxInputBytes", maxInputBytes);
  if (countMembers(bytes) > (maxMembers ?? Infinity)) throw tooMuch("members", "maxMembers", maxMembers);
  await sandbox.executor.files.extract(pieces(bytes), { maxBytes: maxExtractedBytes ?? Number.MAX_SAFE_INTEGER });
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function tooMuch(what: string, option: string, limit: number | null | undefined): SandboxArchiveError {
  return new SandboxArchiveError(`The archive has more than ${limit} ${what}. Raise \`archiveLimits.${option}\`.`);
}

/** Whether it is a valid archive is up to `extract`. */
function countMembers(archive: Uint8Array): number {
  const text = (start: number, length: number): string =>
    Buffer.from(archive.buffer, archive.byteOffset + start, length).toString("latin1");
  let members = 0;
  for (let at = 0; at + blockBytes <= archive.length && archive[at] !== 0;) {
    if (!metadataTypes.has(text(at + 156, 1))) members += 1;
    // Files of 8 GiB or more give their size in another form; `extract` refuses what is too large.
    const size = Number.parseInt(text(at + 124, 12), 8) || 0;
    at += blockBytes * (1 + Math.ceil(size / blockBytes));
  }
  return members;
}
