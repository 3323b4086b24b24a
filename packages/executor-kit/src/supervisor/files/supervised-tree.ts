import { randomUUID } from "node:crypto";
import { checkpointPartBytes } from "@fenced/core";
import { inTheWay } from "../../checkpoints/in-the-way.ts";
import type {
  FileParts,
  FileVisit,
  PlannedEntry,
  TreeEntry,
  TreeLoss,
  TreePlan,
  WantedFile,
  WorkspaceTree,
} from "../../checkpoints/workspace-tree.ts";
import { pathBytes, pathOfLatin1 } from "../../workspace/path-bytes.ts";
import { treesProgram } from "../python-programs.ts";
import { absences, asPiece, nextPiece, notAnAnswer, readPieces, readRecords } from "./file-pieces.ts";
import { ask, type FileRequest, type FilesPlace } from "./file-request.ts";

/** Milliseconds without any data while a tree is created: its content may come from a store far away. */
const createMs = 300_000;
/** The place may be forged, and would make a run wait, in milliseconds. */
const longestSettling = 2100;
/** In place of a part's length: the file is gone, cannot be read, or has this part still. */
const marks = new Map<number, "gone" | "unreadable" | "same">([...absences, [0xffff_fffd, "same"]]);
const hole = Buffer.from([0xff, 0xff, 0xff, 0xfd]);

const types: Readonly<Record<string, TreeEntry["type"]>> = {
  f: "file",
  d: "directory",
  l: "link",
  o: "other",
  "?": "unknown",
};

/** The tree of a workspace where a supervisor runs; each request is one Python program there, whatever the number of files. */
export class SupervisedTree implements WorkspaceTree {
  readonly #place: FilesPlace & { readonly filePrefix: string };

  constructor(place: FilesPlace & { readonly filePrefix: string }) {
    this.#place = place;
  }

  async list(add: (entry: TreeEntry) => void): Promise<void> {
    let link: TreeEntry | undefined;
    for await (const record of readRecords(this.#ask({ words: ["tree", "."] }), ".")) {
      if (link) {
        add({ ...link, target: pathOfLatin1(record) });
        link = undefined;
        continue;
      }
      const entry = entryOf(record);
      if (!entry) throw notAnAnswer(".");
      if (entry.type === "link") link = entry;
      else add(entry);
    }
  }

  async read<File extends WantedFile>(files: readonly File[], visit: FileVisit<File>): Promise<void> {
    const answer = this.#ask({ words: ["parts", "."], stdin: wanted(files) });
    const frames = readPieces(answer, checkpointPartBytes, marks);
    try {
      for (const file of files) {
        const first = await nextPiece(frames, file.path);
        if (first === "gone" || first === "unreadable") {
          await visit(file, first);
          continue;
        }
        await visit(file, partsOf(first, frames, file.path));
      }
    } finally {
      await frames.return();
    }
  }

  async create(plan: TreePlan, lose: TreeLoss): Promise<void> {
    let failure: unknown;
    const sent = async function* (): AsyncGenerator<Uint8Array, void, void> {
      try {
        for await (const entry of plan.entries()) yield* described(entry);
        yield asPiece(Buffer.alloc(0));
      } catch (error) {
        // Input that breaks off makes the program discard everything.
        failure = error;
      }
    };
    const part = `${this.#place.filePrefix}${randomUUID().slice(0, 12)}.part`;
    let problem: Error | undefined;
    try {
      const supervisor = await this.#place.supervisor();
      const request = { words: ["create", part], stdin: sent(), limitMs: createMs, supervisor };
      for await (const record of readRecords(this.#ask(request), ".")) {
        const [, kind, what = "", path = ""] = /([!#]) (\S+) ([^]*)$/.exec(record) ?? [];
        const given = pathOfLatin1(path);
        if (kind === "!") lose(given, `The file system there does not support it (${what})`);
        if (kind === "#") problem = inTheWay(given, what === "directory" ? "directory" : "file");
      }
    } catch (error) {
      throw failure ?? error;
    }
    if (problem) throw problem;
  }

  #ask(request: FileRequest): AsyncGenerator<Uint8Array, void, void> {
    return ask(this.#place, { ...request, program: treesProgram });
  }
}

function entryOf(record: string): TreeEntry | undefined {
  const [, letter = "", mode = "", modified = "", size = "", state = "", path] =
    /^([fdlo?]) ([0-7]+) (-?\d+) (\d+) (\S+) ([^]+)$/.exec(record) ?? [];
  const type = types[letter];
  if (type === undefined || path === undefined) return undefined;
  const bits = Number.parseInt(mode, 8);
  const [, settling, identity] = /^(?:(\d{1,9})~)?([\da-f]+-[\da-f]+-[\da-f]+)$/.exec(state) ?? [];
  return {
    path: pathOfLatin1(path),
    type,
    mode: bits & 0o777,
    modifiedAt: Number(modified) / 1e6,
    size: type === "file" ? Number(size) : 0,
    state: identity !== undefined && settling === undefined ? identity : undefined,
    identity,
    settlesIn: settling === undefined ? undefined : Math.min(Number(settling), longestSettling),
    isPrivileged: type === "file" && (bits & 0o6000) !== 0,
  };
}

async function* wanted(files: readonly WantedFile[]): AsyncGenerator<Uint8Array, void, void> {
  for (const { path, size, known } of files) yield asPiece(pathBytes(`${[size, ...known].join(" ")}\0${path}`));
  yield asPiece(Buffer.alloc(0));
}

async function* described(entry: PlannedEntry): AsyncGenerator<Uint8Array, void, void> {
  const { type, path, mode, modifiedAt, target, size } = entry;
  const facts = `${type.slice(0, 1)} ${mode} ${Math.round(modifiedAt * 1000)}000`;
  const header = {
    file: `${facts} ${size}\0${path}`,
    directory: `${facts}\0${path}`,
    link: `${facts}\0${path}\0${target}`,
  };
  yield asPiece(pathBytes(header[type]));
  if (type !== "file") return;
  for await (const part of entry.content()) yield part === "hole" ? hole : asPiece(part);
  yield asPiece(Buffer.alloc(0));
}

/** A part of a file, or what is there in its place. */
type Frame = Uint8Array | "gone" | "unreadable" | "same";

async function* partsOf(first: Frame, frames: AsyncIterator<Frame, void, void>, path: string): FileParts {
  for (let frame = first; ; frame = await nextPiece(frames, path)) {
    if (frame === "gone" || frame === "unreadable") throw notAnAnswer(path);
    if (frame !== "same" && frame.length === 0) break;
    yield frame;
  }
  const end = await nextPiece(frames, path);
  if (typeof end === "string") throw notAnAnswer(path);
  const [, changed, state, size] = /^([01]) (\S{1,200}) (\d{1,15})$/.exec(Buffer.from(end).toString("latin1")) ?? [];
  if (changed === undefined) throw notAnAnswer(path);
  return { isChanged: changed === "1", state: state === "-" ? undefined : state, size: Number(size) };
}
