import { ask } from "./wire.mjs";

/** Where the session's files are; all other paths belong to this interpreter alone. The host keeps both. */
const mount = "/workspace";
const mostLinks = 40;
const linkBits = 0o120_000;

/**
 * Asks the host about a file by its absolute path, as programs name it. The host knows two trees and follows no links.
 *
 * @param {any} fields
 * @param {Uint8Array} [bytes]
 * @returns {{ fields: any, bytes?: Uint8Array }}
 */
export function askAboutFile(fields, bytes) {
  const { op, path, links, flags, ...rest } = fields;
  if (op === "open") return openFile(path, flags);
  if (op === "real") return { fields: { path: realPath(path) } };
  if (rest.fd !== undefined) {
    const { fd, ...others } = rest;
    return ask({ op, handle: fd - firstDescriptor, ...others }, bytes);
  }
  if (op === "mkdir") return ask({ op: "make", ...place(realPath(path, false)), kind: "directory", mode: 0o755 });
  if (op === "rename") {
    const [from, to] = [place(realPath(path, false)), place(realPath(rest.to, false))];
    return from.tree === to.tree ? ask({ op, ...from, to: to.path }) : { fields: { error: "EXDEV" } };
  }
  const follows = op === "stat" ? links !== true : op === "list" || op === "change";
  return ask({ op, ...place(realPath(path, follows)), ...rest }, bytes);
}

/** Descriptors of programs begin after the standard ones. */
const firstDescriptor = 2;

/**
 * @param {string} path
 * @param {string} flags - as Node's `fs.open` takes them.
 */
function openFile(path, flags) {
  const at = place(realPath(path));
  const { fields: found } = ask({ op: "stat", ...at });
  const creates = /^[wa]/.test(flags);
  if (found.error !== undefined && !(found.error === "ENOENT" && creates)) return { fields: found };
  if (found.error === undefined && flags.includes("x")) return { fields: { error: "EEXIST" } };
  if (found.error !== undefined) {
    const { fields: made } = ask({ op: "make", ...at, kind: "file", mode: 0o644 });
    if (made.error !== undefined) return { fields: made };
  }
  const { fields: opened } = ask({ op: "open", ...at });
  if (opened.error !== undefined) return { fields: opened };
  if (flags.startsWith("w")) ask({ op: "change", handle: opened.handle, size: 0 });
  return { fields: { fd: opened.handle + firstDescriptor } };
}

/**
 * The path without links, dots and doubled slashes.
 *
 * @param {string} path
 * @param {boolean} [last] - whether to follow its last part as well.
 * @returns {string}
 */
export function realPath(path, last = true) {
  let coming = path.split("/").toReversed();
  /** @type {string[]} */
  let done = [];
  // Few paths have links, so try one request first.
  const plain = joined(normal(path));
  const { fields } = ask({ op: "stat", ...place(plain) });
  if (fields.error === "ENOENT" || (fields.error === undefined && (!last || !isLink(fields)))) return plain;
  for (let links = 0; coming.length > 0;) {
    const part = coming.pop() ?? "";
    if (part === "" || part === ".") continue;
    if (part === "..") {
      done.pop();
      continue;
    }
    const next = joined([...done, part]);
    const { fields: found } = ask({ op: "stat", ...place(next) });
    if (found.error === "ELOOP" || links > mostLinks) throw fileError("ELOOP");
    if (found.error !== undefined || !isLink(found) || (coming.length === 0 && !last)) {
      done.push(part);
      continue;
    }
    links += 1;
    const { target } = ask({ op: "target", ...place(next) }).fields;
    if (target.startsWith("/")) done = [];
    coming = [...coming, ...target.split("/").toReversed()];
  }
  return joined(done);
}

/**
 * The whole content of a file; `undefined` if it cannot be opened.
 *
 * @param {string} path - without links.
 * @returns {any} - a buffer.
 */
export function readWhole(path) {
  const { fields } = openFile(path, "r");
  if (fields.fd === undefined) return undefined;
  const pieces = [];
  for (let at = 0, more = true; more;) {
    const { bytes = Buffer.alloc(0) } = askAboutFile({ op: "read", fd: fields.fd, at, length: 524_288 });
    pieces.push(bytes);
    at += bytes.length;
    more = bytes.length === 524_288;
  }
  askAboutFile({ op: "close", fd: fields.fd });
  return Buffer.concat(pieces);
}

/**
 * The entry at a path; `undefined` if there is none.
 *
 * @param {string} path
 * @returns {{ readonly path: string, readonly kind: "file" | "directory", readonly version: string } | undefined}
 */
export function lookAt(path) {
  const real = realPath(path);
  const { fields } = ask({ op: "stat", ...place(real) });
  if (fields.error !== undefined) return undefined;
  const kind = (fields.mode & 0o170_000) === 0o40_000 ? "directory" : "file";
  return { path: real, kind, version: `${fields.id}-${fields.modifiedAt}-${fields.size}` };
}

/**
 * @param {string} code
 * @returns {Error}
 */
function fileError(code) {
  return Object.assign(new Error(code), { code });
}

/** @param {any} found */
function isLink(found) {
  return (found.mode & 0o170_000) === linkBits;
}

/** @param {string} path */
export function normal(path) {
  /** @type {string[]} */
  const parts = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts;
}

/** @param {readonly string[]} parts */
function joined(parts) {
  return `/${parts.join("/")}`;
}

/** @param {string} path - normal. */
function place(path) {
  if (path === mount) return { path: "" };
  return path.startsWith(`${mount}/`) ? { path: path.slice(mount.length + 1) } : { tree: 1, path: path.slice(1) };
}
