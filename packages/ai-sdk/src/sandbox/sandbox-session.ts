import { randomUUID } from "node:crypto";
import { TextDecoder } from "node:util";
import {
  BoundedOutput,
  InvalidInputError,
  processesOf,
  type CodeExecutor,
  type ExecutorProcesses,
  type RunningProcess,
  type WritableProcess,
} from "@fenced/core";
import {
  checkOptions,
  codeExecutorOption,
  optionsSchema,
  type OptionSchemas,
  wholeNumberOption,
} from "@fenced/core/options";
import * as z from "zod";
import { programs, runFileProgram, startFileProgram, type FileProgram } from "./sandbox-programs.ts";
import type {
  ExecutorSandboxSession,
  SandboxCommand,
  SandboxContent,
  SandboxDirectoryEntry,
  SandboxFileStat,
  SandboxPath,
  SandboxTextPath,
} from "./sandbox-types.ts";

/** Options of `sandboxSession`; all are optional. */
export interface SandboxSessionOptions {
  /** Tells a model where commands run. Default: generated from the workspace's path and the executor's capabilities. */
  readonly description?: string | undefined;
  /**
   * Maximum bytes that `run` keeps of each output stream; replaces the middle of longer output with a note. Default:
   * 1,048,576.
   */
  readonly maxOutputBytes?: number | undefined;
}

const sessionOptions: OptionSchemas<SandboxSessionOptions> = {
  description: z.string().exactOptional(),
  maxOutputBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
};
const argumentsSchema = optionsSchema({ executor: codeExecutorOption, ...sessionOptions });

/** Limits in bytes: a file in memory, a directory listing, a piece of a file to write. */
const [mostFileBytes, mostListingBytes, pieceBytes] = [536_870_912, 67_108_864, 1_048_576];

/**
 * Turns an executor into a sandbox of AI SDK 7, for `experimental_sandbox` of `generateText`, `streamText` and agents.
 * Their tools run commands in it and read and write its files.
 *
 * @param executor - one with `processes`. The first use starts it; you stop it.
 * @throws InvalidInputError if the executor cannot start programs, or an option is unknown or wrong.
 *
 * @example
 * await using executor = new DockerCommandLineCodeExecutor();
 * await generateText({ model, tools, prompt, experimental_sandbox: sandboxSession(executor) });
 */
export function sandboxSession(executor: CodeExecutor, options: SandboxSessionOptions = {}): ExecutorSandboxSession {
  checkOptions(argumentsSchema, { ...options, executor }, "sandboxSession");
  return new SandboxOverProcesses(executor, options);
}

/** A sandbox that runs on an executor's `processes`. */
export class SandboxOverProcesses implements ExecutorSandboxSession {
  readonly #executor: CodeExecutor;
  readonly #processes: ExecutorProcesses;
  readonly #options: SandboxSessionOptions;

  constructor(executor: CodeExecutor, options: SandboxSessionOptions) {
    this.#executor = executor;
    this.#processes = processesOf(executor);
    this.#options = options;
  }

  get description(): string {
    const { workspacePath: place = "the workspace", capabilities } = this.#executor;
    const { description } = this.#options;
    if (description !== undefined) return description;
    const languages = capabilities.languages.join(", ");
    return `Commands run in /bin/sh in ${place}; relative paths start there. Available languages: ${languages}.`;
  }

  async run(options: SandboxCommand): Promise<{ exitCode: number; stdout: string; stderr: string }> {
    const { maxOutputBytes = 1_048_576 } = this.#options;
    const started = await this.#start(options);
    const [stdout, stderr, { exitCode }] = await Promise.all([
      BoundedOutput.read(started.stdout, maxOutputBytes),
      BoundedOutput.read(started.stderr, maxOutputBytes),
      started.wait(),
    ]);
    return { exitCode, stdout, stderr };
  }

  spawn(options: SandboxCommand & { readonly stdin: true }): Promise<WritableProcess>;
  spawn(options: SandboxCommand & { readonly stdin?: boolean | undefined }): Promise<RunningProcess>;
  spawn({
    stdin = false,
    ...options
  }: SandboxCommand & { readonly stdin?: boolean | undefined }): Promise<RunningProcess> {
    return this.#start(options, stdin);
  }

  async readFile({ path, abortSignal }: SandboxPath): Promise<ReadableStream<Uint8Array> | null> {
    const output = await startFileProgram(this.#processes, { program: programs.read, path, signal: abortSignal });
    const { value: first, done } = await output.next();
    if (done === true) return null;
    const rest = first.slice(1);
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          if (rest.length > 0) controller.enqueue(rest);
        },
        pull: async (controller) => {
          const { value, done: over } = await output.next();
          if (over === true) controller.close();
          else controller.enqueue(value);
        },
        cancel: async () => {
          await output.return("done");
        },
      },
      { highWaterMark: 0 },
    );
  }

  async readBinaryFile(options: SandboxPath): Promise<Uint8Array | null> {
    const bytes = await this.#run({ program: programs.read, ...options }, mostFileBytes);
    return bytes === undefined ? null : new Uint8Array(bytes.subarray(1));
  }

  async readTextFile({ encoding = "utf-8", startLine, endLine, ...options }: SandboxTextPath): Promise<string | null> {
    const decoder = decoderFor(encoding);
    const bytes = await this.readBinaryFile(options);
    return bytes && linesOf(decoder.decode(bytes), startLine, endLine);
  }

  async writeFile({ path, content, abortSignal }: SandboxContent<ReadableStream<Uint8Array>>): Promise<void> {
    // Pieces are collected in a separate file until all have arrived, so that no reader finds half a file.
    const part = `.fenced-part-${randomUUID()}`;
    let waiting = Buffer.alloc(0);
    let parts = 0;
    const flush = async (): Promise<void> => {
      const stdin = waiting;
      waiting = Buffer.alloc(0);
      parts += 1;
      await this.#run({ program: programs.append, path: part, stdin, abortSignal });
    };
    try {
      for await (const bytes of content) {
        abortSignal?.throwIfAborted();
        waiting = Buffer.concat([waiting, bytes]);
        if (waiting.length > pieceBytes) await flush();
      }
      if (parts > 0) await flush();
      const from = parts > 0 ? { other: `./${part}` } : { stdin: waiting };
      await this.#run({ program: programs.write, path, ...from, abortSignal });
    } catch (error) {
      if (parts > 0) await this.#run({ program: programs.discard, path: part }).catch(() => {});
      throw error;
    }
  }

  async writeBinaryFile({ path, content, abortSignal }: SandboxContent<Uint8Array>): Promise<void> {
    await this.#run({ program: programs.write, path, stdin: content, abortSignal });
  }

  async writeTextFile({
    content,
    encoding = "utf-8",
    ...options
  }: SandboxContent<string> & { readonly encoding?: string | undefined }): Promise<void> {
    if (!Buffer.isEncoding(encoding)) throw unknownEncoding(encoding);
    await this.writeBinaryFile({ ...options, content: Buffer.from(content, encoding) });
  }

  async stat(options: SandboxPath): Promise<SandboxFileStat | null> {
    const text = (await this.#run({ program: programs.stat, ...options }))?.toString();
    if (text === undefined) return null;
    const [type, size] = text.trim().split(/ +/);
    return { type: type === "file" || type === "directory" ? type : "other", size: Number(size) };
  }

  async listDirectory(options: SandboxPath): Promise<SandboxDirectoryEntry[] | null> {
    const bytes = await this.#run({ program: programs.list, ...options }, mostListingBytes);
    if (bytes === undefined) return null;
    return bytes.toString().split("\0").slice(0, -1).map(entryOf);
  }

  async deleteFile(options: SandboxPath): Promise<boolean> {
    return (await this.#run({ program: programs.delete, ...options })) !== undefined;
  }

  #start({ command, workingDirectory, env, abortSignal }: SandboxCommand, stdin = false): Promise<RunningProcess> {
    return this.#processes.start({
      command,
      stdin,
      ...(workingDirectory === undefined ? {} : { cwd: workingDirectory }),
      ...(env === undefined ? {} : { env }),
      ...(abortSignal === undefined ? {} : { signal: abortSignal }),
    });
  }

  #run(
    { abortSignal, ...program }: Omit<FileProgram, "signal"> & Pick<SandboxPath, "abortSignal">,
    maxBytes: number = pieceBytes,
  ): Promise<Buffer | undefined> {
    return runFileProgram(this.#processes, { ...program, signal: abortSignal }, maxBytes);
  }
}

function entryOf(line: string): SandboxDirectoryEntry {
  const [, type, name = ""] = /^(\w+) (.*)$/s.exec(line) ?? [];
  const known = type === "file" || type === "directory" || type === "symlink";
  return { name, type: known ? type : "other" };
}

function decoderFor(encoding: string): TextDecoder {
  try {
    return new TextDecoder(encoding);
  } catch {
    throw unknownEncoding(encoding);
  }
}

function unknownEncoding(encoding: string): InvalidInputError {
  return new InvalidInputError(`Unknown encoding ${JSON.stringify(encoding)}`, { remedy: 'Use "utf-8".' });
}

/** The lines from `start` to `end`, counted from 1 and inclusive, with the file's own line endings. */
function linesOf(text: string, start: number | undefined, end: number | undefined): string {
  if (start === undefined && end === undefined) return text;
  const lineEnd = ["\r\n", "\n", "\r"].find((each) => text.includes(each)) ?? "\n";
  return text
    .split(lineEnd)
    .slice(Math.max(1, start ?? 1) - 1, end)
    .join(lineEnd);
}
