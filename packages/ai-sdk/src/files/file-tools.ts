import { InvalidInputError, type CodeExecutor, type FileInfo } from "@fenced/core";
import {
  checkOptions,
  codeExecutorOption,
  optionsSchema,
  type OptionSchemas,
  wholeNumberOption,
} from "@fenced/core/options";
import type { Tool } from "ai";
import * as z from "zod";

/** Options of `fileTools`; all are optional. */
export interface FileToolsOptions {
  /** Maximum number of characters that one call of `read_file` returns. Default: 30,000. */
  readonly maxCharacters?: number | undefined;
  /** Maximum number of files that `list_files` returns. Default: 1,000. */
  readonly maxFiles?: number | undefined;
  /** Maximum bytes that one call of `write_file` may write. Default: 1,048,576. */
  readonly maxWriteBytes?: number | undefined;
}

/** The input of `read_file`. */
export interface ReadFileInput {
  /** Relative to the workspace. */
  readonly path: string;
  /** The byte to begin at. */
  readonly offset: number;
}

/** A part of a text file. */
export interface ReadFileOutput {
  /** The text of this part. */
  readonly text: string;
  /** Size of the whole file in bytes. */
  readonly size: number;
  /** The offset of the next part in bytes; absent at the end of the file. */
  readonly nextOffset?: number;
}

/** The input of `write_file`. */
export interface WriteFileInput {
  /** Relative to the workspace. */
  readonly path: string;
  /** The whole new content. */
  readonly content: string;
}

/** The output of `list_files`. */
export interface ListFilesOutput {
  /** The files, at most `maxFiles`. */
  readonly files: readonly FileInfo[];
  /** The total number of files; `files` may list fewer. */
  readonly total: number;
}

/** The tools that `fileTools` creates. */
export type FileTools = Record<"list_files", Tool<{ directory?: string | undefined }, ListFilesOutput>> &
  Record<"read_file", Tool<ReadFileInput, ReadFileOutput>> &
  Record<"write_file", Tool<WriteFileInput, { path: string; bytes: number }>>;

const schemas: OptionSchemas<FileToolsOptions> = {
  maxCharacters: wholeNumberOption({ from: 1, unit: "characters" }).exactOptional(),
  maxFiles: wholeNumberOption({ from: 1, unit: "files" }).exactOptional(),
  maxWriteBytes: wholeNumberOption({ from: 1, unit: "bytes" }).exactOptional(),
};
const argumentsSchema = optionsSchema({ executor: codeExecutorOption, ...schemas });
const path = z.string().min(1).describe("Relative to the workspace, the directory in which code runs.");

/**
 * Creates the tools `list_files`, `read_file` and `write_file` for an executor's workspace, to use next to
 * `codeExecutionTool`. Paths cannot leave the workspace. A mistake that the model can correct, such as a wrong path, is
 * a `tool-error` that says how.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * const tools = { execute_code: codeExecutionTool(executor), ...fileTools(executor) };
 */
export function fileTools(executor: CodeExecutor, options: FileToolsOptions = {}): FileTools {
  const checked = checkOptions(argumentsSchema, { ...options, executor }, "fileTools");
  const { maxCharacters = 30_000, maxFiles = 1000, maxWriteBytes = 1_048_576 } = checked;
  const { files } = executor;
  return {
    list_files: {
      description: "Lists the files in the workspace, including subdirectories.",
      inputSchema: z.object({ directory: z.string().optional().describe("Default: the whole workspace.") }),
      execute: async ({ directory }, { abortSignal }) => {
        abortSignal?.throwIfAborted();
        const found = await files.list(directory);
        return { files: found.slice(0, maxFiles), total: found.length };
      },
    },
    read_file: {
      description: `Reads a text file of the workspace, at most ${maxCharacters} characters a call.`,
      inputSchema: z.object({ path, offset: z.int().min(0).default(0).describe("The byte to begin at.") }),
      execute: async ({ path: file, offset }, { abortSignal }) =>
        readPart(executor, { path: file, offset, maxCharacters, signal: abortSignal }),
    },
    write_file: {
      description: "Writes a text file of the workspace: replaces an existing one, and creates missing directories.",
      inputSchema: z.object({ path, content: z.string() }),
      execute: async ({ path: file, content }, { abortSignal }) => {
        const bytes = Buffer.byteLength(content);
        if (bytes > maxWriteBytes) throw tooLong(bytes, maxWriteBytes);
        abortSignal?.throwIfAborted();
        await files.write(file, content);
        return { path: file, bytes };
      },
    },
  };
}

/** @throws InvalidInputError if the file is not text. */
async function readPart(
  { files }: CodeExecutor,
  {
    path: file,
    offset,
    maxCharacters,
    signal,
  }: {
    readonly path: string;
    readonly offset: number;
    readonly maxCharacters: number;
    readonly signal: AbortSignal | undefined;
  },
): Promise<ReadFileOutput> {
  const { size, type } = await files.stat(file);
  if (type === "directory") throw notText(file, "is a directory");
  // A character of UTF-8 has up to four bytes.
  const range = { start: offset, end: offset + 4 * maxCharacters - 1, ...(signal ? { signal } : {}) };
  const bytes = new Uint8Array(await new Response(files.readStream(file, range)).arrayBuffer());
  const end = endOfCharacters(bytes, maxCharacters);
  const part = bytes.subarray(0, end);
  if (part.includes(0)) throw notText(file, "is not text");
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  try {
    const rest = offset + end < size ? { nextOffset: offset + end } : {};
    return { text: text.decode(part), size, ...rest };
  } catch {
    throw notText(file, "is not UTF-8 text from this offset on");
  }
}

/** The end of the first `count` characters of UTF-8. */
function endOfCharacters(bytes: Uint8Array, count: number): number {
  let begun = 0;
  const next = bytes.findIndex((byte) => (byte & 0xc0) !== 0x80 && ++begun > count);
  return next === -1 ? bytes.length : next;
}

function notText(file: string, what: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(file)} ${what}`, {
    remedy: "Use list_files to see the files and their sizes, or run code that reads it.",
  });
}

function tooLong(bytes: number, most: number): InvalidInputError {
  return new InvalidInputError(`The content has ${bytes} bytes; write_file writes at most ${most}`, {
    remedy: "Run code that writes the file.",
  });
}
