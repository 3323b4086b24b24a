import { showHidden } from "../text/show-hidden.ts";
import { wellFormed } from "../text/well-formed.ts";

/** Types that run nothing, wherever a browser shows them. */
const inert: Readonly<Record<string, string>> = {
  avif: "image/avif",
  gif: "image/gif",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  png: "image/png",
  webp: "image/webp",
  m4a: "audio/mp4",
  mp3: "audio/mpeg",
  ogg: "audio/ogg",
  wav: "audio/wav",
  mp4: "video/mp4",
  webm: "video/webm",
  csv: "text/csv; charset=utf-8",
  json: "application/json",
  log: "text/plain; charset=utf-8",
  md: "text/markdown; charset=utf-8",
  txt: "text/plain; charset=utf-8",
};

/** Types that can contain scripts. HTML is not one of them: nothing on a page needs it as HTML. */
const active: Readonly<Record<string, string>> = {
  pdf: "application/pdf",
  svg: "image/svg+xml",
};

/** The type to send for a file, by its extension, and whether a browser may show it. */
export function contentTypeOf(path: string): { readonly type: string; readonly isInert: boolean } {
  const extension = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  const type = Object.hasOwn(inert, extension) ? inert[extension] : undefined;
  if (type !== undefined) return { type, isInert: true };
  const other = Object.hasOwn(active, extension) ? active[extension] : undefined;
  return { type: other ?? "application/octet-stream", isInert: false };
}

/** A `Content-Disposition` with the file's name, which code chose (RFC 6266). */
export function contentDisposition(path: string, disposition: "attachment" | "inline"): string {
  // Direction marks would make a program look like a picture.
  const last = wellFormed(path.slice(path.lastIndexOf("/") + 1)).replaceAll(/[\t\n]/g, "_");
  const name = showHidden(last, () => "_");
  const plain = name.replaceAll(/[^\w !#$&+.@^`{}~()-]/g, "_");
  const encoded = encodeURIComponent(name).replaceAll(/['()*]/g, percent);
  return `${disposition}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}
