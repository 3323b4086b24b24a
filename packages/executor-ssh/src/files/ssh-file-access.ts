import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { BackendUnavailableError, type FileInfo } from "@fenced/core";
import { asWorkspaceError, type RemoteFileAccess } from "@fenced/executor-kit";
import { connectionError } from "../connection/ssh-error.ts";
import { quoted } from "../remote/shell-words.ts";
import type { CallEnd, RemoteCall } from "../run/remote-call.ts";

/** The most that a list of files may take, in bytes: blocks can make any number of files. */
const longestList = 67_108_864;

/** Who makes calls of the remote program. */
export interface Caller {
  readonly host: string;
  call(words: string): Promise<RemoteCall>;
}

/** The files of a work directory on the remote host, through the program that the session has there. */
export class SshFileAccess implements RemoteFileAccess {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async list(directory: string): Promise<FileInfo[]> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of this.#read("list", directory)) {
      bytes += chunk.length;
      if (bytes > longestList) throw tooManyFiles(directory);
      chunks.push(chunk);
    }
    const entries = Buffer.concat(chunks).toString().split("\0");
    return entries.flatMap((entry) => {
      const [, size, file] = /^(\d+) ([^]+)$/.exec(entry) ?? [];
      if (file === undefined) return [];
      return [{ path: directory === "." ? file : `${directory}/${file}`, size: Number(size) }];
    });
  }

  content(file: string): AsyncGenerator<Uint8Array, void, void> {
    return this.#read("content", file);
  }

  async put(file: string, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    const call = await this.#caller.call(`put ${quoted(file)}`);
    // A program that refuses does not read on; its end says why.
    const sent = pipeline(Readable.from(content), call.stdin).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    await finish(call, file, this.#caller.host);
    const failed = await sent;
    if (failed) throw failed.error;
  }

  async remove(file: string): Promise<void> {
    for await (const _ of this.#read("remove", file));
  }

  async *#read(verb: "list" | "content" | "remove", file: string): AsyncGenerator<Uint8Array, void, void> {
    const call = await this.#caller.call(`${verb} ${quoted(file)}`);
    call.stdin.end();
    yield* outputOf(call, file, this.#caller.host);
  }
}

/** Waits for the end of a call that is about a file. */
export async function finish(call: RemoteCall, file: string, host: string): Promise<void> {
  for await (const _ of outputOf(call, file, host));
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
    // Whoever leaves early has no use for the rest.
    if (!ended) call.fail(undefined);
  }
}

/** @throws the error that the end of a call stands for. */
function assertDone(end: CallEnd, errors: string, file: string, host: string): void {
  if (end.type === "broken") throw connectionError(`The host ${host} did not answer`, host, end.said);
  if (end.type === "refused") throw refusal(end, file);
  if (end.code !== 0) throw asWorkspaceError(new Error(errors.trim()), file);
}

function tooManyFiles(directory: string): BackendUnavailableError {
  return new BackendUnavailableError(`The list of files in ${JSON.stringify(directory)} is longer than 64 MiB`, {
    remedy: "Remove files there by a block, or list a directory with fewer.",
  });
}

/** The error for a file that the remote program refuses. */
export function refusal({ code, text }: { readonly code: string; readonly text: string }, file: string): unknown {
  if (code === "GONE") {
    return new BackendUnavailableError("The work directory on the remote host is gone", {
      remedy: "Stop the executor; the next call starts it with a fresh one.",
    });
  }
  return asWorkspaceError(Object.assign(new Error(text), { code }), file);
}
