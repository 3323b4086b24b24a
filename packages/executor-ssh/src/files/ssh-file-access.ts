import {
  BackendUnavailableError,
  InvalidInputError,
  sanitizeTerminalText,
  type FileInfo,
  type FileStat,
} from "@fenced/core";
import { asWorkspaceError, pathOfLatin1, type FileContent, type RemoteFileAccess } from "@fenced/executor-kit";
import { connectionError } from "../connection/ssh-error.ts";
import type { CallEnd, RemoteCall } from "../run/remote-call.ts";

/** Maximum length of one file's entry in a list in characters. */
const longestEntry = 1_048_576;

/** Time limit for a file request without a byte in either direction in milliseconds. */
const quietMs = 60_000;
/** The same for a removal, which is silent until it is done. */
const removalMs = 300_000;

/** Makes file requests. */
export interface Caller {
  readonly host: string;
  call(words: readonly string[], quietMs: number): Promise<RemoteCall>;
}

/** The files of a work directory on the remote host, accessed through the session's call program there. */
export class SshFileAccess implements RemoteFileAccess {
  readonly seeks = true;
  readonly measurable = true;
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async *list(directory: string): AsyncGenerator<FileInfo, void, void> {
    let rest = "";
    for await (const chunk of this.#read(["list", directory])) {
      const entries = (rest + Buffer.from(chunk).toString("latin1")).split("\0");
      rest = entries.pop() ?? "";
      if (rest.length > longestEntry) throw notAList(directory);
      for (const entry of entries) {
        const [, size, file] = /^(\d+) ([^]+)$/.exec(entry) ?? [];
        if (file === undefined) continue;
        const below = pathOfLatin1(file);
        yield { path: directory === "." ? below : `${directory}/${below}`, size: Number(size) };
      }
    }
  }

  async stat(file: string): Promise<FileStat> {
    let said = "";
    for await (const chunk of this.#read(["status", file])) said = (said + String(Buffer.from(chunk))).slice(0, 200);
    const [, type, size, seconds] = /^(file|directory) (\d+) (\d+)\n$/.exec(said) ?? [];
    if (type !== "file" && type !== "directory") throw notAList(file);
    return { path: file, type, size: Number(size), modifiedAt: new Date(Number(seconds) * 1000) };
  }

  content(file: string, start: number): AsyncGenerator<Uint8Array, void, void> {
    return this.#read(["content", file, String(start)]);
  }

  async put(file: string, content: FileContent): Promise<void> {
    const call = await this.#caller.call(["put", file], quietMs);
    const sent = call.send(wholeOf(file, content));
    sent.catch((error: unknown) => call.fail(error));
    for await (const _ of outputOf(call, file, this.#caller.host));
    await sent;
  }

  async remove(file: string): Promise<void> {
    for await (const _ of this.#read(["remove", file], removalMs));
  }

  async *#read(
    words: readonly [verb: string, file: string, start?: string],
    limitMs = quietMs,
  ): AsyncGenerator<Uint8Array, void, void> {
    const call = await this.#caller.call(
      words.filter((word) => word !== undefined),
      limitMs,
    );
    void call.send();
    yield* outputOf(call, words[1], this.#caller.host);
  }
}

async function* wholeOf(file: string, content: FileContent): AsyncGenerator<Uint8Array, void, void> {
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes === content.size) return;
  throw new InvalidInputError(`${JSON.stringify(file)} changed while it was being sent`, {
    remedy: "Send it again when no program writes to it.",
  });
}

async function* outputOf(call: RemoteCall, file: string, host: string): AsyncGenerator<Uint8Array, void, void> {
  const events = call.events();
  let errors = "";
  let ended = false;
  try {
    for (;;) {
      const { value, done } = await events.next();
      if (done === true) {
        ended = true;
        assertDone(value, errors, file, host);
        return;
      }
      if (value.type === "stdout" && typeof value.data !== "string") yield value.data;
      else if (value.type === "stderr") errors = (errors + String(value.data)).slice(-1000);
    }
  } finally {
    // A reader that stops early does not need the rest.
    if (!ended) call.fail(undefined);
  }
}

/** @throws the error that the end of a call represents, if any. */
function assertDone(end: CallEnd, errors: string, file: string, host: string): void {
  if (end.type === "broken") throw connectionError(`The host ${host} did not answer`, host, end.said);
  if (end.type === "refused") throw refusal(end, file);
  if (end.code !== 0) throw asWorkspaceError(new Error(sanitizeTerminalText(errors.trim())), file);
}

function notAList(file: string): BackendUnavailableError {
  return new BackendUnavailableError(`The remote host's answer about ${JSON.stringify(file)} is not valid`, {
    remedy: "Code may have replaced programs of that account. Check the account, and call stop().",
  });
}

/** The error for a file that the remote program refuses. */
export function refusal({ code, text }: { readonly code: string; readonly text: string }, file: string): unknown {
  if (code === "GONE") {
    return new BackendUnavailableError("The work directory on the remote host no longer exists", {
      remedy: "Stop the executor; the next call starts it with a new one.",
    });
  }
  return asWorkspaceError(Object.assign(new Error(sanitizeTerminalText(text)), { code }), file);
}
