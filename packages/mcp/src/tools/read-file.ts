import { posix } from "node:path";
import { type CodeExecutor, FileNotFoundError, InvalidInputError } from "@fenced/core";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";
import type { McpServerOptions } from "../mcp-server-options.ts";
import { imageContent } from "./run-code.ts";

const signatures: readonly (readonly [type: string, pattern: RegExp])[] = [
  ["image/png", /^\x89PNG\r\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF.{4}WEBP/s],
];

/** Adds the tool that reads a file of the workspace. */
export function addReadFile(server: McpServer, executor: CodeExecutor, options: McpServerOptions): void {
  const { maxFileBytes = 3_750_000, maxOutputCharacters = 30_000 } = options;
  server.registerTool(
    "read_file",
    {
      title: "Read file",
      description:
        "Reads a file of the workspace: text as text, pictures as images, anything else as a blob. Long text comes " +
        `in pieces of ${maxOutputCharacters} characters.`,
      inputSchema: {
        path: z.string().describe("Relative to the workspace."),
        offset: z.int().min(0).default(0).describe("For text: the character to start at."),
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    async ({ path, offset }, { signal }) => {
      const bytes = await readBounded(executor, posix.normalize(path), { limit: maxFileBytes, signal });
      return { content: [toContent(bytes, { path, offset, maxOutputCharacters })] };
    },
  );
}

/** Files are read whole, so check their size first. */
async function readBounded(
  { files }: CodeExecutor,
  path: string,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  const directory = posix.dirname(path);
  const found = (await files.list(directory === "." ? undefined : directory)).find((file) => file.path === path);
  if (found === undefined) {
    throw new FileNotFoundError(`There is no file ${path} in the workspace`, {
      remedy: "Call list_files to see the files.",
    });
  }
  if (found.size > limit) throw tooLarge(path, found.size, limit);
  // If the session has ended meanwhile, reading would start the executor again.
  signal.throwIfAborted();
  const bytes = await files.read(path);
  // Running code may have made it longer in the meantime.
  if (bytes.byteLength > limit) throw tooLarge(path, bytes.byteLength, limit);
  return bytes;
}

function tooLarge(path: string, size: number, limit: number): InvalidInputError {
  return new InvalidInputError(`${path} has ${size} bytes; read_file reads at most ${limit}`, {
    remedy: "Run code that prints the part you need, or writes it to a smaller file.",
  });
}

function toContent(
  bytes: Uint8Array,
  {
    path,
    offset,
    maxOutputCharacters,
  }: { readonly path: string; readonly offset: number; readonly maxOutputCharacters: number },
): CallToolResult["content"][number] {
  const mimeType = imageType(bytes);
  if (mimeType !== undefined) return imageContent(bytes, mimeType);
  const text = decode(bytes);
  if (text === undefined) {
    const uri = `workspace:///${path.split("/").map(encodeURIComponent).join("/")}`;
    const blob = Buffer.from(bytes).toString("base64");
    return { type: "resource", resource: { uri, mimeType: "application/octet-stream", blob } };
  }
  // At least one character, so that the next call makes progress, and never half of one.
  const least = Math.min(offset + Math.max(1, maxOutputCharacters), text.length);
  const end = /[\uD800-\uDBFF]/.test(text.charAt(least - 1)) ? Math.min(least + 1, text.length) : least;
  const piece = text.slice(offset, end).replace(/^[\uDC00-\uDFFF]/, "");
  if (piece.length === text.length) return { type: "text", text };
  const next = end < text.length ? ` Call again with offset ${end} for more.` : "";
  return { type: "text", text: `${piece}\n[Characters ${offset} to ${end} of ${text.length}.${next}]` };
}

/** The MIME type of an image that models support, detected from its first bytes regardless of its name. */
function imageType(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, 16)).toString("latin1");
  return signatures.find(([, pattern]) => pattern.test(head))?.[0];
}

/** Returns `undefined` if it is not text. */
function decode(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
