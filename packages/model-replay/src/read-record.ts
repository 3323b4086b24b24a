// Always with `bigint`, as the rule requires.
// oxlint-disable-next-line no-restricted-imports
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { FileNotFoundError, InvalidInputError, JsonLimitError, parseJson as parseJsonText } from "@fenced/core";
import * as z from "zod";
import { recordEntrySchema, type RecordEntry } from "./record-entry.ts";

/**
 * Reads the entries of a recording. Ignores a last line without a line break, which a crash left behind.
 *
 * @throws FileNotFoundError if the file does not exist.
 * @throws InvalidInputError if it is not a regular file or is too large, or if a line is not an entry or has an unknown
 * version.
 */
export function readRecord(file: string): RecordEntry[] {
  return readText(file)
    .split("\n")
    .slice(0, -1)
    .map((line, index) => parseLine(line, `${file}:${index + 1}`));
}

/** Maximum size of a recording: many days of chat. */
const maxBytes = 268_435_456;

function readText(file: string): string {
  const descriptor = openRecord(file);
  try {
    // bigint: after a numeric stat of a pipe, Node 20 and 22 cannot resolve imports through links (nodejs/node#51142).
    const stats = fstatSync(descriptor, { bigint: true });
    if (!stats.isFile()) {
      throw new InvalidInputError(`${file} is not a regular file`, { remedy: "Pass the path of a recording." });
    }
    if (stats.size > maxBytes) {
      throw new InvalidInputError(`${file} has ${stats.size} bytes; a recording may have at most ${maxBytes}`, {
        remedy: "Record the session again, in parts.",
      });
    }
    const bytes = Buffer.alloc(Number(stats.size));
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(descriptor, bytes, length, bytes.length - length, null);
    }
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(descriptor);
  }
}

function openRecord(file: string): number {
  try {
    // Otherwise, opening a FIFO would wait for a writer.
    return openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    throw new FileNotFoundError(`The recording ${file} cannot be read`, {
      remedy: "Record it first with a RecordingChatCompletionClient, or fix the path.",
      cause,
    });
  }
}

function parseLine(line: string, place: string): RecordEntry {
  const value = parseJson(line, place);
  const version = typeof value === "object" && value !== null && "version" in value ? value.version : undefined;
  if (typeof version === "number" && version > 1) {
    throw new InvalidInputError(`${place} has version ${version}, but this package reads version 1`, {
      remedy: "Update @fenced/model-replay, or record the session again.",
    });
  }
  const parsed = recordEntrySchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw notAnEntry(place, z.prettifyError(parsed.error).replaceAll(/\s+/g, " "), parsed.error);
}

function parseJson(line: string, place: string): unknown {
  try {
    return parseJsonText(line);
  } catch (cause) {
    throw notAnEntry(place, cause instanceof JsonLimitError ? `it is ${cause.message}` : "it is not JSON", cause);
  }
}

function notAnEntry(place: string, why: string, cause: unknown): InvalidInputError {
  return new InvalidInputError(`${place} is not an entry of a recording: ${why}`, {
    remedy: "Fix the line, or record the session again.",
    cause,
  });
}
