import { readFileSync } from "node:fs";
import { FileNotFoundError, InvalidInputError } from "@fenced/core";
import * as z from "zod";
import { recordEntrySchema, type RecordEntry } from "./record-entry.ts";

/**
 * The entries of a record. A last line without a line break is what a crash left of it, and left out.
 *
 * @throws FileNotFoundError if the file is not there.
 * @throws InvalidInputError if a line is not an entry, or of a version that is not known here.
 */
export function readRecord(file: string): RecordEntry[] {
  return readText(file)
    .split("\n")
    .slice(0, -1)
    .map((line, index) => parseLine(line, `${file}:${index + 1}`));
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new FileNotFoundError(`The record ${file} cannot be read`, {
      remedy: "Record it first, with a RecordingChatCompletionClient, or correct the path.",
      cause,
    });
  }
}

function parseLine(line: string, place: string): RecordEntry {
  const value = parseJson(line, place);
  const version = typeof value === "object" && value !== null && "version" in value ? value.version : undefined;
  if (typeof version === "number" && version > 1) {
    throw new InvalidInputError(`${place} is of version ${version}, and this package knows version 1`, {
      remedy: "Update @fenced/model-replay, or record the session again.",
    });
  }
  const parsed = recordEntrySchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw notAnEntry(place, z.prettifyError(parsed.error).replaceAll(/\s+/g, " "), parsed.error);
}

function parseJson(line: string, place: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw notAnEntry(place, "it is not JSON", cause);
  }
}

function notAnEntry(place: string, why: string, cause: unknown): InvalidInputError {
  return new InvalidInputError(`${place} is not an entry of a record: ${why}`, {
    remedy: "Correct the line, or record the session again.",
    cause,
  });
}
