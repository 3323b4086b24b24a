import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  BackendUnavailableError,
  InvalidInputError,
  sanitizeTerminalText,
  type FileInfo,
  type FileStat,
} from "@fenced/core";
import { pathOfLatin1 } from "../workspace/path-bytes.ts";
import { asWorkspaceError } from "../workspace/pinned-directory.ts";
import type { RemoteFileAccess } from "../workspace/remote-files.ts";
import type { FileContent } from "../workspace/spool-file.ts";
import type { Supervisor } from "./supervisor.ts";

const filesProgram: string = readFileSync(new URL("./files.py", import.meta.url), "utf8");

/** Time limit for a request without any answer in milliseconds. */
const quietMs = 60_000;
/** The same for a removal, which sends nothing until it is done. */
const removalMs = 300_000;
/** Bytes of a file to pass to one program; they are held in memory where the supervisor runs. */
const pieceBytes = 4_194_304;
/** Maximum length of one file's entry in a list in characters. */
const longestEntry = 1_048_576;
const longestStatus = 200;

/** Where a supervisor's files are, and how to access them. */
export interface SupervisedFilesSettings {
  /** The directory in which programs run. Absolute path there. */
  readonly workspace: string;
  /** Path of Python 3.8 or later, from the `programs` of the inventory. */
  readonly python: string;
  /** Prefix of the names of the session's own files in the workspace. */
  readonly filePrefix: string;
  /** Returns the current supervisor; a lost one may have been replaced. */
  readonly supervisor: () => Promise<Supervisor>;
}

/** Workspace files where a supervisor runs; each request is a short Python program there. Linux only. */
export class SupervisedFiles implements RemoteFileAccess {
  readonly seeks = true;
  readonly measurable = true;
  readonly #settings: SupervisedFilesSettings;

  constructor(settings: SupervisedFilesSettings) {
    this.#settings = settings;
  }

  async *list(directory: string): AsyncGenerator<FileInfo, void, void> {
    let rest = "";
    for await (const chunk of this.#ask({ words: ["list", directory] })) {
      const entries = (rest + Buffer.from(chunk).toString("latin1")).split("\0");
      rest = entries.pop() ?? "";
      if (rest.length > longestEntry) throw notAnAnswer(directory);
      for (const entry of entries) {
        const [, size, file] = /^(\d+) ([^]+)$/.exec(entry) ?? [];
        if (file !== undefined) yield { path: pathOfLatin1(file), size: Number(size) };
      }
    }
  }

  async stat(file: string): Promise<FileStat> {
    let said = "";
    for await (const chunk of this.#ask({ words: ["stat", file] })) {
      said = (said + Buffer.from(chunk).toString()).slice(0, longestStatus);
    }
    const [, type, size, modified] = /^(file|directory) (\d+) (\d+)\n$/.exec(said) ?? [];
    if (type !== "file" && type !== "directory") throw notAnAnswer(file);
    return { path: file, type, size: type === "file" ? Number(size) : 0, modifiedAt: new Date(Number(modified)) };
  }

  content(file: string, start: number): AsyncGenerator<Uint8Array, void, void> {
    return this.#ask({ words: ["content", file, String(start)] });
  }

  async put(file: string, content: FileContent): Promise<void> {
    const part = `${this.#settings.filePrefix}${randomUUID().slice(0, 12)}.part`;
    let sent = 0;
    const send = async (stdin: Uint8Array, last: boolean): Promise<void> => {
      const words = ["put", file, part, sent === 0 ? "first" : "next", last ? String(content.size) : "-"];
      sent += stdin.length;
      for await (const _ of this.#ask({ words, stdin }));
    };
    try {
      let waiting: Uint8Array[] = [];
      let bytes = 0;
      for await (const chunk of content) {
        for (let rest = chunk; rest.length > 0;) {
          // The last piece is held back, because it marks the file as complete.
          if (bytes === pieceBytes) {
            await send(Buffer.concat(waiting), false);
            [waiting, bytes] = [[], 0];
          }
          const piece = rest.subarray(0, pieceBytes - bytes);
          waiting.push(Buffer.from(piece));
          bytes += piece.length;
          rest = rest.subarray(piece.length);
        }
      }
      if (sent + bytes !== content.size) throw changed(file);
      await send(Buffer.concat(waiting), true);
    } catch (error) {
      if (sent > 0) await this.#drop(part);
      throw error;
    }
  }

  async remove(file: string): Promise<void> {
    for await (const _ of this.#ask({ words: ["remove", file], limitMs: removalMs }));
  }

  /** Never rejects, so that it does not hide the failure that it cleans up after. */
  async #drop(part: string): Promise<void> {
    try {
      for await (const _ of this.#ask({ words: ["drop", part] }));
    } catch {
      // The place is lost, and so is the file.
    }
  }

  async *#ask({ words, stdin, limitMs = quietMs }: FileRequest): AsyncGenerator<Uint8Array, void, void> {
    const { python, workspace } = this.#settings;
    const [, file = "."] = words;
    const supervisor = await this.#settings.supervisor();
    const ending = new AbortController();
    const events = supervisor.run({
      argv: [python, "-I", "-S", "-X", "utf8", "-c", filesProgram, workspace, ...words],
      env: {},
      ...(stdin === undefined ? {} : { stdin }),
      signal: ending.signal,
    });
    let errors = "";
    try {
      for (;;) {
        const late = setTimeout(() => ending.abort(), limitMs);
        const { value, done } = await events.next().finally(() => clearTimeout(late));
        if (ending.signal.aborted) throw notAnswered(file, limitMs);
        if (done === true) {
          if (value.exitCode !== 0) throw refusal(errors, file);
          return;
        }
        // Copy it, because the memory may be reused.
        if (value.type === "stdout" && typeof value.data !== "string") yield Buffer.from(value.data);
        else if (value.type === "stderr") errors = (errors + String(value.data)).slice(-longestStatus);
      }
    } finally {
      // A reader that leaves early does not need the rest.
      ending.abort();
      await events.return({ exitCode: 0, outOfMemory: false });
    }
  }
}

interface FileRequest {
  readonly words: readonly string[];
  readonly stdin?: Uint8Array;
  readonly limitMs?: number;
}

function refusal(said: string, file: string): unknown {
  const [, code = "EIO", text = `the request was ended; ${said}`] = /^(E[A-Z0-9]+) ([^]*)$/.exec(said) ?? [];
  return asWorkspaceError(Object.assign(new Error(sanitizeTerminalText(text.trim())), { code }), file);
}

function changed(file: string): InvalidInputError {
  return new InvalidInputError(`${JSON.stringify(file)} changed while it was being sent`, {
    remedy: "Send it again when no program writes to it.",
  });
}

function notAnswered(file: string, limitMs: number): BackendUnavailableError {
  return new BackendUnavailableError(
    `The request for ${JSON.stringify(file)} was not answered within ${limitMs / 1000} s`,
    { remedy: "Call restart(), which ends all processes there, and try again." },
  );
}

function notAnAnswer(file: string): BackendUnavailableError {
  return new BackendUnavailableError(`The answer about ${JSON.stringify(file)} does not match the request`, {
    remedy: "Code may have interfered with the request. Call restart(), and try again.",
  });
}
