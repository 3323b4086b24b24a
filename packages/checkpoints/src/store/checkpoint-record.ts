import { randomUUID } from "node:crypto";
import {
  type CheckpointInfo,
  type CheckpointIssue,
  type CheckpointVariable,
  type CheckpointVariables,
  parseJson,
} from "@fenced/core";
import { fieldsOf, isCount, notAnEntry, partsOf, referencesTo } from "./entry-lines.ts";
import { partOf } from "./keys.ts";

/** The version of the layout; see the decision page on checkpoints. */
const version = 1;

/** What a checkpoint's record says. Its SHA-256 is the checkpoint's id. */
export interface CheckpointRecord {
  readonly createdAt: Date;
  readonly files: number;
  readonly bytes: number;
  /** References to the groups of its entries, in order. */
  readonly groups: readonly string[];
  readonly variables: CheckpointVariables | undefined;
  readonly incomplete: readonly CheckpointIssue[];
}

/** The record as bytes. They are never the same, so that deleting one checkpoint does not delete an equal one. */
export function recordBytes(record: CheckpointRecord): Uint8Array {
  const { createdAt, files, bytes, groups, variables, incomplete } = record;
  return Buffer.from(
    JSON.stringify({
      fencedCheckpoint: version,
      nonce: randomUUID(),
      createdAt: createdAt.toISOString(),
      files,
      bytes,
      groups: groups.join(" "),
      variables: variables && {
        interpreter: variables.interpreter,
        list: variables.variables.map(({ name, format, size, parts }) => ({
          name,
          format,
          size,
          parts: referencesTo(parts),
        })),
      },
      incomplete,
    }),
  );
}

/** @throws SyntaxError if it is not a record, or one of a later version. */
export function parseRecord(bytes: Uint8Array): CheckpointRecord {
  const field = fieldsOf(parseJson(bytes));
  const [files, size, groups, incomplete] = [field("files"), field("bytes"), field("groups"), field("incomplete")];
  const createdAt = new Date(String(field("createdAt")));
  if (field("fencedCheckpoint") !== version) throw new SyntaxError("A newer version of Fenced may have written it");
  if (!isCount(files) || !isCount(size) || typeof groups !== "string" || !Array.isArray(incomplete)) throw notAnEntry();
  if (Number.isNaN(createdAt.getTime())) throw notAnEntry();
  const list = groups === "" ? [] : groups.split(" ");
  if (list.some((reference) => !partOf(reference, 0))) throw notAnEntry();
  return {
    createdAt,
    files,
    bytes: size,
    groups: list,
    variables: parseVariables(field("variables")),
    incomplete: incomplete.map(parseIssue),
  };
}

/** What the record tells about the checkpoint. */
export function infoOf(id: string, { createdAt, files, bytes, variables }: CheckpointRecord): CheckpointInfo {
  return { id, createdAt, files, bytes, variables: variables?.variables.map(({ name }) => name) ?? [] };
}

function parseVariables(value: unknown): CheckpointVariables | undefined {
  if (value === undefined) return undefined;
  const field = fieldsOf(value);
  const [interpreter, list] = [field("interpreter"), field("list")];
  if (typeof interpreter !== "string" || !Array.isArray(list)) throw notAnEntry();
  return { interpreter, variables: list.map(parseVariable) };
}

function parseVariable(value: unknown): CheckpointVariable {
  const field = fieldsOf(value);
  const [name, format, size, parts] = [field("name"), field("format"), field("size"), field("parts")];
  if (typeof name !== "string" || !isFormat(format) || !isCount(size) || typeof parts !== "string") throw notAnEntry();
  return { name, format, size, parts: partsOf(parts, size) };
}

function isFormat(value: unknown): value is CheckpointVariable["format"] {
  return value === "pickle" || value === "cloudpickle" || value === "dill" || value === "module";
}

function parseIssue(value: unknown): CheckpointIssue {
  const field = fieldsOf(value);
  const [kind, name, reason] = [field("kind"), field("name"), field("reason")];
  if (typeof name !== "string" || typeof reason !== "string") throw notAnEntry();
  if (kind !== "file" && kind !== "variable" && kind !== "more") throw notAnEntry();
  return { kind, name, reason };
}
