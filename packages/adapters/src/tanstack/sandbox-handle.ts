import { constants } from "node:os";
import { posix } from "node:path";
import { InvalidInputError, processSignals, type ProcessSignal, type WritableProcess } from "@fenced/core";
import {
  createExecBackedGit,
  type ProcessOptions,
  type SandboxCapabilities,
  type SandboxFs,
  type SandboxGit,
  type SandboxHandle,
  type SandboxProcess,
  type SnapshotRef,
  type SpawnHandle,
} from "@tanstack/ai-sandbox";
import type { ExecutorSandbox } from "../executor-sandbox.ts";
import type { ExecutorSandboxes } from "../executor-sandboxes.ts";

interface HandleParts {
  readonly sandboxes: ExecutorSandboxes;
  readonly capabilities: SandboxCapabilities;
}

/** An executor as a sandbox of TanStack AI. */
export class SandboxHandleOver implements SandboxHandle {
  readonly id: string;
  readonly provider = "fenced";
  readonly capabilities: SandboxCapabilities;
  readonly fs: SandboxFs;
  readonly process: SandboxProcess;
  readonly git: SandboxGit;
  readonly ports: SandboxHandle["ports"];
  readonly env: SandboxHandle["env"];
  /** Present if there are snapshots. */
  declare readonly snapshot?: (label?: string) => Promise<SnapshotRef>;
  /** Present if there are snapshots. */
  declare readonly fork?: () => Promise<SandboxHandle>;
  readonly #sandbox: ExecutorSandbox;
  readonly #parts: HandleParts;

  constructor(sandbox: ExecutorSandbox, parts: HandleParts) {
    this.#sandbox = sandbox;
    this.#parts = parts;
    this.id = sandbox.id;
    this.capabilities = parts.capabilities;
    this.fs = filesOf(sandbox);
    this.process = {
      exec: (command, options) => sandbox.run({ command, ...givenIn(options) }),
      spawn: async (command, options) => spawned(await sandbox.start({ command, ...givenIn(options) })),
    };
    this.git = gitOf(sandbox, this.process);
    this.ports = { connect: async (port) => ({ url: await sandbox.url(port) }) };
    this.env = { set: async (variables) => sandbox.setEnv(variables) };
    if (!parts.sandboxes.hasSnapshots) return;
    this.snapshot = async (label) => ({
      id: await parts.sandboxes.snapshot(sandbox),
      ...(label === undefined ? {} : { label }),
    });
    this.fork = async () => {
      const snapshot = await parts.sandboxes.snapshot(sandbox);
      const copy = await parts.sandboxes.create(undefined, { snapshot });
      copy.setEnv(sandbox.env);
      return new SandboxHandleOver(copy, parts);
    };
  }

  get workspaceRoot(): string {
    return this.#sandbox.root;
  }

  destroy(): Promise<void> {
    return this.#parts.sandboxes.end(this.id);
  }
}

function givenIn({ cwd, env, signal }: ProcessOptions = {}): Pick<ProcessOptions, "cwd" | "env" | "signal"> {
  return { ...(cwd === undefined ? {} : { cwd }), ...(env ? { env } : {}), ...(signal ? { signal } : {}) };
}

function filesOf(sandbox: ExecutorSandbox): SandboxFs {
  const { files, capabilities } = sandbox.executor;
  return {
    read: (path) => sandbox.readText(path),
    readBytes: (path) => files.read(sandbox.fileAt(path)),
    write: (path, data) => files.write(sandbox.fileAt(path), data),
    list: async (path) => {
      const entries = await files.list(sandbox.fileAt(path), { recursive: false, directories: true });
      return entries.map(({ path: found, type }) => {
        const name = posix.basename(found);
        return { name, path: posix.join(path, name), type: type === "directory" ? "dir" : "file" };
      });
    },
    mkdir: (path) => files.makeDirectory(sandbox.fileAt(path)),
    remove: (path) => sandbox.remove(path),
    rename: (from, to) => files.move(sandbox.fileAt(from), sandbox.fileAt(to)),
    exists: (path) => sandbox.exists(path),
    ...(capabilities.files?.includes("watch") === true && {
      watch: (path, onEvent) => watch(sandbox, path, onEvent),
    }),
  };
}

/** Resolves once what happens is seen. */
async function watch(
  sandbox: ExecutorSandbox,
  path: string,
  onEvent: (event: { type: string; path: string }) => void,
): Promise<{ stop: () => Promise<void> }> {
  const leaving = new AbortController();
  const directory = sandbox.fileAt(path);
  const events = sandbox.executor.files.watch(directory, { recursive: true, signal: leaving.signal });
  await events.next();
  const passing = (async () => {
    for await (const { type, path: happened } of events) {
      onEvent({ type, path: posix.join(path, posix.relative(directory, happened)) });
    }
    // Watching ends with its directory and with the sandbox.
  })().catch(() => {});
  return {
    stop: async () => {
      leaving.abort();
      await passing;
    },
  };
}

function spawned(started: WritableProcess): SpawnHandle {
  const stdin = started.stdin.getWriter();
  return {
    // Where it is not known, no number is a process of nobody's.
    pid: started.pid ?? Number.NaN,
    stdout: started.stdout.pipeThrough(new TextDecoderStream()),
    stderr: started.stderr.pipeThrough(new TextDecoderStream()),
    stdin: {
      write: (data) => stdin.write(Buffer.from(data)),
      end: () => stdin.close(),
    },
    wait: async () => (await started.wait()).exitCode,
    kill: (signal = "SIGTERM") => started.kill(signalNamed(signal)),
  };
}

function signalNamed(signal: NodeJS.Signals | number): ProcessSignal {
  const name = typeof signal === "string" ? signal : nameOf(signal);
  const known = processSignals.find((each) => each === name);
  if (known !== undefined) return known;
  throw new InvalidInputError(`${JSON.stringify(signal)} is no signal that can be sent`, {
    remedy: `Use one of ${processSignals.join(", ")}.`,
  });
}

function nameOf(number: number): string | undefined {
  return Object.entries(constants.signals).find(([, each]) => each === number)?.[0];
}

/** Git by commands; directories are where programs find them. */
function gitOf(sandbox: ExecutorSandbox, process: SandboxProcess): SandboxGit {
  const git = createExecBackedGit(process, sandbox.root);
  const at = (directory: string | undefined): string => sandbox.pathOf(directory ?? ".");
  return {
    clone: (input) => git.clone({ ...input, dir: at(input.dir) }),
    status: (directory) => git.status(at(directory)),
    add: (paths, directory) => git.add(paths, at(directory)),
    commit: (message, directory) => git.commit(message, at(directory)),
    push: (directory) => git.push(at(directory)),
    pull: (directory) => git.pull(at(directory)),
    branch: (directory) => git.branch(at(directory)),
  };
}
