import { type CheckpointEntry, type CheckpointPart, checkpointPartBytes, parseJson } from "@fenced/core";
import { partOf, referenceTo } from "./keys.ts";

/** On average, a group has this many entries; a power of two. */
const groupEntries = 512;
/** A group ends after this many characters, whatever is in it. */
const groupCharacters = 1_048_576;

/**
 * Cuts entries into groups of lines, each a JSON object. Where a group ends depends on the paths, so that one more file
 * changes one group.
 */
export function* inGroups(entries: Iterable<CheckpointEntry>): Generator<string, void, void> {
  let lines: string[] = [];
  let characters = 0;
  for (const entry of entries) {
    const line = JSON.stringify(asLine(entry));
    lines.push(line);
    characters += line.length;
    if (!endsGroup(entry.path) && characters < groupCharacters) continue;
    yield `${lines.join("\n")}\n`;
    lines = [];
    characters = 0;
  }
  if (lines.length > 0) yield `${lines.join("\n")}\n`;
}

/** FNV-1a. */
function endsGroup(path: string): boolean {
  let hash = 0x81_1c_9d_c5;
  for (let at = 0; at < path.length; at += 1) hash = Math.imul(hash ^ path.charCodeAt(at), 0x01_00_01_93);
  return ((hash ^ (hash >>> 16)) & (groupEntries - 1)) === 0;
}

function asLine(entry: CheckpointEntry): object {
  const common = { p: entry.path, m: entry.mode, t: entry.modifiedAt };
  if (entry.type === "directory") return { ...common, d: 1 };
  if (entry.type === "link") return { ...common, l: entry.target };
  return { ...common, s: entry.size, h: referencesTo(entry.parts) };
}

/** The entries of a group. @throws SyntaxError if it is not one. */
export function* entriesIn(group: string): Generator<CheckpointEntry, void, void> {
  for (const line of group.split("\n")) if (line !== "") yield asEntry(parseJson(line));
}

function asEntry(line: unknown): CheckpointEntry {
  const field = fieldsOf(line);
  const [path, mode, modifiedAt] = [field("p"), field("m"), field("t")];
  const [size, target, references] = [field("s"), field("l"), field("h")];
  if (typeof path !== "string" || !isCount(mode) || typeof modifiedAt !== "number") throw notAnEntry();
  const common = { path, mode, modifiedAt };
  if (typeof target === "string") return { ...common, type: "link", target };
  if (field("d") === 1) return { ...common, type: "directory" };
  if (!isCount(size) || typeof references !== "string") throw notAnEntry();
  return { ...common, type: "file", size, parts: partsOf(references, size) };
}

/** The references to a file's parts, with spaces. Their sizes follow from the file's. */
export function referencesTo(parts: readonly CheckpointPart[]): string {
  return parts.map(referenceTo).join(" ");
}

/** @throws SyntaxError if these cannot be the parts of a file of this size. */
export function partsOf(references: string, size: number): CheckpointPart[] {
  const list = references === "" ? [] : references.split(" ");
  if (list.length !== Math.ceil(size / checkpointPartBytes)) throw notAnEntry();
  return list.map((reference, index) => {
    const part = partOf(reference, Math.min(checkpointPartBytes, size - index * checkpointPartBytes));
    if (!part) throw notAnEntry();
    return part;
  });
}

/** Reads the fields of something that may not be an object. */
export function fieldsOf(value: unknown): (name: string) => unknown {
  return (name): unknown => (typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined);
}

/** Whether something is a whole number that is not negative. */
export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** The error for something that Fenced did not write. It does not name the checkpoint, which its callers do. */
export function notAnEntry(): SyntaxError {
  return new SyntaxError("It is not what Fenced writes");
}
