import { constants, type Stats } from "node:fs";
import { open, readdir, realpath, stat, type FileHandle } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  type Entry,
  type GitRepo,
  type Manifest,
  permissionsForSandboxEntry,
  SandboxGitCloneError,
  SandboxGitMissingInImageError,
  SandboxLocalDirReadError,
  SandboxLocalFileReadError,
  SandboxRuntimeError,
  SandboxUnsupportedFeatureError,
} from "@openai/agents-core/sandbox";
import { isHostPathWithinRoot, sandboxPathGrantHostPath } from "@openai/agents-core/sandbox/internal";
import type { ExecutorSandbox } from "../executor-sandbox.ts";

const gitTimeoutMs = 300_000;
const missingGitCode = 96;

// A commit cannot be cloned by its name.
const clone = `set -eu
command -v git > /dev/null || exit ${missingGitCode}
export GIT_TERMINAL_PROMPT=0
into=$FENCED_INTO
if [ -n "$FENCED_SUBPATH" ]; then
  kept=$(mktemp -d)
  trap 'rm -rf "$kept"' EXIT
  into=$kept/repository
fi
mkdir -p "$(dirname "$FENCED_INTO")"
case $FENCED_REF in
  "") git clone -q --depth 1 -- "$FENCED_REPOSITORY" "$into" ;;
  *[!0-9a-f]*) git clone -q --depth 1 --branch="$FENCED_REF" -- "$FENCED_REPOSITORY" "$into" ;;
  ????????????????????????????????????????*)
    git init -q "$into"
    cd "$into"
    git remote add origin "$FENCED_REPOSITORY"
    git fetch -q --depth 1 --no-tags origin "$FENCED_REF"
    git checkout -q --detach FETCH_HEAD ;;
  *) git clone -q --depth 1 --branch="$FENCED_REF" -- "$FENCED_REPOSITORY" "$into" ;;
esac
[ -z "$FENCED_SUBPATH" ] || cp -R "$into/$FENCED_SUBPATH" "$FENCED_INTO"
`;

/** @throws SandboxUnsupportedFeatureError if a sandbox cannot have what a manifest asks for. */
export function checkManifest(manifest: Manifest, { keepsFiles }: { readonly keepsFiles: boolean }): void {
  if (manifest.users.length > 0 || manifest.groups.length > 0) refuseUser();
  for (const { logicalPath, entry } of manifest.iterEntries()) {
    const path = JSON.stringify(logicalPath);
    if (entry.group !== undefined) refuseUser();
    if (/(?:^|_)mount$/.test(entry.type)) {
      throw new SandboxUnsupportedFeatureError(
        `Nothing can be mounted at ${path}: a sandbox's mounts are those of its executor. Set them there, with the option \`mounts\`.`,
      );
    }
    if (keepsFiles && entry.ephemeral === true) {
      throw new SandboxUnsupportedFeatureError(
        `The entry ${path} is ephemeral, but snapshots keep all files. Make it an environment variable, or run with \`snapshot: new NoopSnapshotSpec()\`.`,
      );
    }
  }
}

/** @throws SandboxUnsupportedFeatureError if somebody else than the sandbox's user is to do something. */
export function refuseUser(runAs = "somebody else"): void {
  if (runAs.trim() === "") return;
  throw new SandboxUnsupportedFeatureError(
    `A sandbox has one user, so nothing in it can run as or belong to ${runAs}. Leave out \`runAs\`, \`users\`, \`groups\` and \`group\`; the executor's options choose its user.`,
  );
}

/** Creates what a manifest lists. */
export async function writeEntries(
  sandbox: ExecutorSandbox,
  manifest: Manifest,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const writer = new EntryWriter(sandbox, manifest, environment);
  const entries = [...manifest.iterEntries()];
  for (const { logicalPath, entry } of entries) await writer.write(logicalPath, entry);
  // Afterwards, and the innermost first: a directory may be closed for its owner.
  for (const { logicalPath, entry } of entries.toReversed()) await writer.restrict(logicalPath, entry);
}

class EntryWriter {
  readonly #sandbox: ExecutorSandbox;
  readonly #manifest: Manifest;
  readonly #environment: Readonly<Record<string, string>>;

  constructor(sandbox: ExecutorSandbox, manifest: Manifest, environment: Readonly<Record<string, string>>) {
    this.#sandbox = sandbox;
    this.#manifest = manifest;
    this.#environment = environment;
  }

  async write(path: string, entry: Entry): Promise<void> {
    const { files } = this.#sandbox.executor;
    switch (entry.type) {
      case "dir":
        return this.#makeDirectory(path);
      case "file":
        return files.write(path, entry.content, this.#mode(modeOf(entry)));
      case "local_file":
        return this.#copyFile(
          await this.#local(entry.src),
          path,
          entry.permissions === undefined ? undefined : modeOf(entry),
        );
      case "local_dir":
        return this.#copyDirectory(await this.#local(entry.src), path);
      case "git_repo":
        return this.#clone(path, entry);
      default:
        throw new SandboxUnsupportedFeatureError(`Entries of type ${JSON.stringify(entry.type)} are not known here.`);
    }
  }

  /** Files have got theirs when they were written. */
  async restrict(path: string, entry: Entry): Promise<void> {
    if (entry.permissions === undefined || entry.type === "file" || entry.type === "local_file") return;
    const mode = (permissionsForSandboxEntry(entry.permissions).toMode() & 0o1777).toString(8);
    const { exitCode, stderr } = await this.#sandbox.run({
      command: ["chmod", mode, "--", this.#sandbox.pathOf(path || ".")],
    });
    if (exitCode === 0) return;
    throw new SandboxRuntimeError(`The permissions of ${JSON.stringify(path)} could not be set: ${end(stderr)}`);
  }

  #mode(mode: number): { readonly mode?: number } {
    return this.#sandbox.executor.capabilities.files?.includes("modes") === true ? { mode } : {};
  }

  async #makeDirectory(path: string): Promise<void> {
    if (path !== "") await this.#sandbox.executor.files.makeDirectory(path);
  }

  /** A source must be below the working directory of this program, or be granted: not what a link leads to. */
  async #local(src: string): Promise<string> {
    const found = await realpath(resolve(src)).catch((cause: unknown) => {
      throw new SandboxLocalFileReadError(`There is no ${JSON.stringify(src)} on this host.`, { cause });
    });
    const allowed = [process.cwd(), ...this.#manifest.extraPathGrants.map((grant) => sandboxPathGrantHostPath(grant))];
    const roots = await Promise.all(allowed.map((each) => realpath(each).catch(() => each)));
    if (roots.some((root) => isHostPathWithinRoot(root, found))) return found;
    throw new SandboxLocalFileReadError(
      `${JSON.stringify(src)} is not below this program's working directory. Add it to the manifest's \`extraPathGrants\`.`,
    );
  }

  async #copyDirectory(source: string, path: string): Promise<void> {
    if (!(await stat(source)).isDirectory()) {
      throw new SandboxLocalDirReadError(`${JSON.stringify(source)} is not a directory.`);
    }
    await this.#makeDirectory(path);
    for (const child of await readdir(source, { withFileTypes: true })) {
      const [from, to] = [join(source, child.name), path === "" ? child.name : `${path}/${child.name}`];
      if (child.isDirectory()) await this.#copyDirectory(from, to);
      else await this.#copyFile(from, to);
    }
  }

  async #copyFile(source: string, path: string, mode?: number): Promise<void> {
    await using file = await openRegularFile(source);
    const { mode: own } = file.stats;
    const writer = this.#sandbox.executor.files.writeStream(path, this.#mode(mode ?? own & 0o777)).getWriter();
    try {
      const pieces = file.handle.createReadStream({ autoClose: false });
      for await (const piece of pieces) await writer.write(Buffer.from(piece));
      await writer.close();
    } catch (error) {
      await writer.abort(error).catch(() => {});
      throw error;
    }
  }

  async #clone(path: string, { host = "github.com", repo, ref = "", subpath = "" }: GitRepo): Promise<void> {
    const isAddress = repo.includes("://") || repo.startsWith("git@");
    const { exitCode, stderr } = await this.#sandbox.run({
      command: clone,
      env: {
        ...this.#environment,
        FENCED_REPOSITORY: isAddress ? repo : `https://${host}/${repo}.git`,
        FENCED_REF: ref,
        FENCED_SUBPATH: subpath,
        FENCED_INTO: this.#sandbox.pathOf(path || "."),
      },
      timeoutMs: gitTimeoutMs,
    });
    if (exitCode === missingGitCode) {
      throw new SandboxGitMissingInImageError(
        "git_repo entries are cloned in the sandbox, which has no `git`. Use an image that has it.",
      );
    }
    if (exitCode !== 0) throw new SandboxGitCloneError(`${JSON.stringify(repo)} could not be cloned: ${end(stderr)}`);
  }
}

function modeOf({ permissions }: Entry): number {
  return permissionsForSandboxEntry(permissions).toMode() & 0o777;
}

function end(text: string): string {
  return text.trim().slice(-2000);
}

interface RegularFile extends AsyncDisposable {
  readonly handle: FileHandle;
  readonly stats: Stats;
}

/** A link is not followed, and a pipe cannot stop this program. */
async function openRegularFile(path: string): Promise<RegularFile> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (cause: unknown) => {
      throw new SandboxLocalFileReadError(
        `${JSON.stringify(path)} cannot be read, or is a link. Copy what it leads to.`,
        { cause },
      );
    },
  );
  const stats = await handle.stat();
  const file = { handle, stats, [Symbol.asyncDispose]: () => handle.close() };
  if (stats.isFile()) return file;
  await handle.close();
  throw new SandboxLocalFileReadError(`${JSON.stringify(path)} is not a file.`);
}
