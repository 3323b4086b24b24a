import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { ToolError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import { BoundedOutput, ByteQueue } from "@fenced/core";
import * as z from "zod";
import type { ToolCall } from "./claimed-session.ts";
import { statOf } from "./file-tools.ts";
import { given, text } from "./given.ts";

// It works in the sandbox, where a pattern that takes for ever costs nothing but its time limit.
const program: string = readFileSync(new URL("./search.py", import.meta.url), "utf8");
const timeoutMs = 60_000;
/** Limit on the paths of a search by names, of which there are at most 200, each with at most 4096 bytes. */
const maxPathsBytes = 1_048_576;
const maxErrorBytes = 4096;
/** The exit code of the program if the pattern is wrong. */
const refused = 3;
const noMatches = "no matches";

const searchInput = z.object({ pattern: text, path: text });

/** The tool `glob`. */
export async function findFiles(input: unknown, call: ToolCall): Promise<string> {
  const { pattern, path } = given(searchInput, input, "glob", ["pattern"]);
  if (posix.isAbsolute(pattern)) {
    throw new ToolError("glob: absolute pattern not permitted; pass a relative pattern (and optionally path)");
  }
  if (pattern.split(/[\\/{},]/).includes("..")) throw new ToolError('glob: ".." is not permitted in the pattern');
  if (path !== "") await statOf("glob", path, call);
  const { output, timedOut } = await search("glob", { pattern, path, maxBytes: maxPathsBytes }, call);
  if (timedOut) throw new ToolError("glob: timed out after 60s");
  return output === "" ? noMatches : output;
}

/** The tool `grep`. */
export async function searchFiles(input: unknown, call: ToolCall, maxBytes: number): Promise<string> {
  const { pattern, path } = given(searchInput, input, "grep", ["pattern"]);
  if (path !== "") await statOf("grep", path, call);
  const { output, timedOut, isCut } = await search("grep", { pattern, path, maxBytes }, call);
  if (isCut) return `${output}\n[output truncated at ${maxBytes} bytes]`;
  if (!timedOut) return output === "" ? noMatches : output;
  if (output === "") throw new ToolError("grep: timed out after 60s");
  return `${output}\n[the search was cut short after ${timeoutMs} ms]`;
}

interface Search {
  readonly pattern: string;
  /** Where to search. Empty: in the workspace. */
  readonly path: string;
  readonly maxBytes: number;
}

interface Found {
  readonly output: string;
  readonly timedOut: boolean;
  /** There is more than was asked for. */
  readonly isCut: boolean;
}

async function search(
  tool: string,
  { pattern, path, maxBytes }: Search,
  { sandbox, signal }: ToolCall,
): Promise<Found> {
  const place = sandbox.pathOf(path === "" ? "." : path);
  await using started = await sandbox.start({
    command: ["python3", "-I", "-S", "-X", "utf8", "-c", program, tool, place, pattern],
    timeoutMs,
    signal,
  });
  const said = BoundedOutput.read(started.stderr, maxErrorBytes);
  said.catch(() => {});
  const bytes = new ByteQueue();
  for await (const piece of started.stdout) {
    bytes.add(piece);
    if (bytes.length > maxBytes) return { output: wholeLines(bytes.take(maxBytes)), timedOut: false, isCut: true };
  }
  const exit = await started.wait();
  const { exitCode } = exit;
  const timedOut = exit.timedOut === true;
  if (!timedOut && exitCode !== 0) throw new ToolError(`${tool}: ${reasonOf(exitCode, await said)}`);
  return { output: Buffer.from(bytes.take()).toString().trimEnd(), timedOut, isCut: false };
}

function wholeLines(bytes: Uint8Array): string {
  const end = bytes.lastIndexOf(10);
  return Buffer.from(end === -1 ? bytes : bytes.subarray(0, end)).toString();
}

function reasonOf(exitCode: number, said: string): string {
  if (exitCode === 127) return "there is no python3 in the sandbox, which this tool needs. Search with the tool bash.";
  return exitCode === refused ? said : `the search failed with exit code ${exitCode}: ${said.trim()}`;
}
