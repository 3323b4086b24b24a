import { type JsonObject, wellFormed } from "@fenced/core";
import * as z from "zod";
import { type Guest, invalidAnswer } from "../guest/guest.ts";
import { ConnectError } from "./connect-error.ts";
import type { Transfer } from "./file-transfers.ts";

const pieceBytes = 262_144;
const openedSchema = z.object({ handle: z.int(), size: z.number().nonnegative(), modified: z.number() });

/** Answers a request to read a file: whole, a range of it, or compressed. */
export async function download({ request, url, guest }: Transfer): Promise<Response> {
  const path = url.searchParams.get("path") ?? "";
  const wanted = request.headers.get("range");
  // A small file comes with the answer, and is closed then.
  const first = request.method === "GET" && wanted === null ? pieceBytes : 0;
  const { result: opened, data: beginning } = await guest.request("open", { path, first }, openedSchema);
  if (beginning.length > first) throw invalidAnswer();
  const file = openFile(guest, opened.handle);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const headers = new Headers({
    "content-type": "application/octet-stream",
    "content-disposition": `inline; filename*=UTF-8''${encodeURIComponent(wellFormed(name))}`,
    "last-modified": new Date(opened.modified * 1000).toUTCString(),
    vary: "Accept-Encoding",
  });
  if (request.method === "HEAD") {
    await file.close();
    return new Response(null, { headers });
  }
  const range = rangeOf(wanted, opened.size);
  if (range === "unsatisfiable") {
    await file.close();
    return new Response(null, { status: 416, headers: { "content-range": `bytes */${opened.size}` } });
  }
  if (range) {
    await file.seek(range.from);
    const most = range.to - range.from + 1;
    headers.set("content-range", `bytes ${range.from}-${range.to}/${opened.size}`);
    headers.set("content-length", String(most));
    return new Response(contentOf(file, most), { status: 206, headers });
  }
  // The kernel's own files say that they are empty, so only what is read tells.
  const next = beginning.length > 0 || opened.handle === 0 ? beginning : await file.read(pieceBytes);
  if (next.length === 0) {
    if (opened.handle !== 0) await file.close();
    return new Response(new Uint8Array(), { headers });
  }
  const content = opened.handle === 0 ? ReadableStream.from([next]) : contentOf(file, Infinity, next);
  const isPlain = opened.size === 0 || !acceptsGzip(request.headers.get("accept-encoding"));
  if (isPlain) return new Response(content, { headers });
  headers.set("content-encoding", "gzip");
  return new Response(content.pipeThrough(new CompressionStream("gzip")), { headers });
}

/** A file that is open in the sandbox. */
interface OpenFile {
  /**
   * Reads on; nothing at the end.
   *
   * @throws ConnectError if it cannot be read; it is closed then.
   */
  readonly read: (size: number) => Promise<Uint8Array>;
  readonly seek: (position: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

function openFile(guest: Guest, handle: number): OpenFile {
  const close = async (): Promise<void> => {
    await guest.request("close", { handle }, z.unknown()).catch(() => {});
  };
  const ask = async (operation: string, parameters: JsonObject): Promise<Uint8Array> => {
    try {
      return (await guest.request(operation, { handle, ...parameters }, z.unknown())).data;
    } catch (error) {
      await close();
      throw error;
    }
  };
  return {
    read: async (size) => {
      const data = await ask("read", { size });
      if (data.length <= size) return data;
      // More than the header promised would be taken for the next response.
      await close();
      throw invalidAnswer();
    },
    seek: async (position) => void (await ask("seek", { position })),
    close,
  };
}

/** A file's content, which closes it. Not a generator, which would not notice if nobody ever began to read it. */
function contentOf(file: OpenFile, most: number = Infinity, first?: Uint8Array): ReadableStream<Uint8Array> {
  let left = most;
  let next = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const data = next ?? (left > 0 ? await file.read(Math.min(left, pieceBytes)) : new Uint8Array());
        next = undefined;
        left -= data.length;
        if (data.length > 0) controller.enqueue(data);
        else {
          await file.close();
          // Its client would wait for the rest.
          if (left > 0 && most !== Infinity) throw new ConnectError("internal", "The file has become shorter");
          controller.close();
        }
      },
      cancel: () => file.close(),
    },
    { highWaterMark: 0 },
  );
}

/** The first range of a header, if it is one that can be answered; other headers are ignored, as RFC 9110 allows. */
function rangeOf(
  header: string | null,
  size: number,
): { readonly from: number; readonly to: number } | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const from = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const to = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  return from <= to ? { from, to } : "unsatisfiable";
}

function acceptsGzip(header: string | null): boolean {
  return (header ?? "").split(",").some((part) => {
    const [name = "", ...parameters] = part.split(";").map((word) => word.trim().toLowerCase());
    return name === "gzip" && !parameters.includes("q=0");
  });
}
