import { posix } from "node:path";
import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import type { AgentToolContext } from "@anthropic-ai/sdk/tools/agent-toolset/node";
import { FileNotFoundError, type FileStat, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import * as z from "zod";
import type { ToolCall } from "./claimed-session.ts";
import { given, text } from "./given.ts";
import { LineRange } from "./line-range.ts";

/** What the tools for files are made of. */
export interface FileTools {
  /** Limit on what `read` returns, and on a file for `edit`. */
  readonly maxFileBytes: number;
  readonly context: Pick<AgentToolContext, "workdir" | "readOnlyRoots">;
}

const readInput = z.object({ file_path: text, view_range: z.array(z.int()).nullish() });
const writeInput = z.object({ file_path: text, content: text });
const editInput = z.object({ file_path: text, old_string: text, new_string: text, replace_all: z.boolean().nullish() });

/** The tool `read`. */
export async function readFile(input: unknown, call: ToolCall, { maxFileBytes }: FileTools): Promise<string> {
  const { file_path: path, view_range: range } = given(readInput, input, "read", ["file_path"]);
  const found = await statOf("read", path, call);
  const [start = 0, end = 0] = range ?? [];
  const isWhole = range === null || range === undefined || range.length === 0;
  if (!isWhole && range.length !== 2) throw new ToolError("read: view_range must be [start_line, end_line]");
  const size = regularSize("read", path, found);
  if (isWhole) return (await wholeFile("read", path, { size, maxFileBytes, call })).toString();
  const lines = new LineRange({ path, start, end, maxBytes: maxFileBytes });
  await told("read", path, readInto(lines, path, call), call);
  return lines.text();
}

/** The tool `write`. */
export async function writeFile(input: unknown, call: ToolCall, { context }: FileTools): Promise<string> {
  const { file_path: path, content } = given(writeInput, input, "write", ["file_path"]);
  refuseReadOnly("write", path, call, context);
  await written("write", path, content, call);
  return `wrote ${Buffer.byteLength(content)} bytes to ${path}`;
}

/** The tool `edit`. */
export async function editFile(input: unknown, call: ToolCall, { maxFileBytes, context }: FileTools): Promise<string> {
  const edit = given(editInput, input, "edit", ["file_path", "old_string"]);
  const { file_path: path, old_string: old, new_string: replacement } = edit;
  refuseReadOnly("edit", path, call, context);
  const size = regularSize("edit", path, await statOf("edit", path, call));
  const parts = (await wholeFile("edit", path, { size, maxFileBytes, call })).toString().split(old);
  const count = parts.length - 1;
  if (count === 0) throw new ToolError(`edit: old_string not found in ${path}`);
  if (count > 1 && edit.replace_all !== true) {
    throw new ToolError(`edit: old_string appears ${count} times in ${path} (must be unique)`);
  }
  await written("edit", path, parts.join(replacement), call);
  return `edited ${path} (${count} replacement(s))`;
}

/**
 * Looks at a path of the workspace. `undefined` if there is nothing that could be read.
 *
 * @throws ToolError if the path leads out of the workspace, or to nothing.
 */
export async function statOf(tool: string, path: string, call: ToolCall): Promise<FileStat | undefined> {
  const { executor } = call.sandbox;
  const looking = executor.files.stat(call.sandbox.fileAt(path)).catch((error: unknown) => {
    // A pipe, a socket or a device.
    if (error instanceof InvalidInputError) return undefined;
    throw error;
  });
  return told(tool, path, looking, call);
}

function regularSize(tool: string, path: string, found: FileStat | undefined): number {
  if (found?.type === "file") return found.size;
  throw new ToolError(`${tool}: ${path} is not a regular file`);
}

interface WholeFile {
  readonly size: number;
  readonly maxFileBytes: number;
  readonly call: ToolCall;
}

/** Reads a file that may grow meanwhile. */
async function wholeFile(tool: string, path: string, { size, maxFileBytes, call }: WholeFile): Promise<Buffer> {
  const tooLarge = (bytes: number): ToolError =>
    new ToolError(
      `${tool}: ${path} is ${bytes} bytes, exceeds ${maxFileBytes}-byte limit. ${
        tool === "read"
          ? "Use the view_range parameter to read specific line ranges, e.g. view_range: [1, 500]."
          : "The edit tool loads the whole file and cannot modify a file this large."
      }`,
    );
  if (size > maxFileBytes) throw tooLarge(size);
  const { sandbox } = call;
  const reading =
    maxFileBytes === Infinity
      ? sandbox.executor.files.read(sandbox.fileAt(path))
      : sandbox.readStart(path, maxFileBytes + 1);
  const bytes = Buffer.from(await told(tool, path, reading, call));
  if (bytes.length > maxFileBytes) throw tooLarge(bytes.length);
  return bytes;
}

async function readInto(lines: LineRange, path: string, { sandbox, signal }: ToolCall): Promise<void> {
  for await (const piece of sandbox.executor.files.readStream(sandbox.fileAt(path), { signal })) {
    lines.add(piece);
    if (lines.isComplete) break;
  }
}

async function written(tool: string, path: string, content: string, call: ToolCall): Promise<void> {
  const { sandbox } = call;
  const writing = sandbox.executor.files.write(sandbox.fileAt(path), content).catch(async (error: unknown) => {
    if (!(error instanceof InvalidInputError)) throw error;
    const found = await sandbox.executor.files.stat(sandbox.fileAt(path)).catch(() => undefined);
    throw found?.type === "directory" ? new ToolError(`${tool}: ${path}: is a directory`) : error;
  });
  await told(tool, path, writing, call);
}

/** Waits until the call is aborted, and says what is wrong as the SDK's tools do. */
async function told<T>(tool: string, path: string, work: Promise<T>, { signal }: ToolCall): Promise<T> {
  try {
    return await untilAborted(work, signal);
  } catch (error) {
    if (error instanceof WorkspacePathError) {
      throw new ToolError(`path ${JSON.stringify(path)} is outside the session's working directory`);
    }
    if (error instanceof FileNotFoundError) throw new ToolError(`${tool}: ${path}: no such file or directory`);
    throw error;
  }
}

/** A store of memories that only the host writes; the SDK refuses this before it looks at the file. */
function refuseReadOnly(
  tool: string,
  path: string,
  { sandbox }: ToolCall,
  { workdir, readOnlyRoots = [] }: FileTools["context"],
): void {
  const target = posix.join("/", sandbox.pathOf(path));
  for (const root of readOnlyRoots) {
    const here = isWithin(workdir, root) ? sandbox.pathOf(posix.relative(workdir, root)) : root;
    if (isWithin(here, target)) throw new ToolError(`${tool}: ${path} is inside read-only directory ${root}`);
  }
}

function isWithin(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`);
}
