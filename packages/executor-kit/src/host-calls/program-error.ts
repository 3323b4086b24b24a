import type { HostCallError } from "@fenced/core";

const longestMessage = 4000;

/** A path of this host in quotes, as Node writes them: everything up to the closing quote. */
const quotedPaths = /(["'`])(?:file:\/\/\/?|[A-Za-z]:[\\/]|\\\\|\/(?!\/))[^"'`\n]{1,4096}\1/g;

/**
 * A path of this host, not part of a URL: at the start, or after a space, a quote or a bracket. Its directories may have
 * spaces and brackets in their names.
 */
const paths =
  /(?<=^|[\s"'`([{<=:,])(?:file:\/\/\/?|[A-Za-z]:[\\/]|\\\\|\/(?!\/))[^\s"'`()[\]{}<>,;:|*?]+(?:(?:[ ()[\]{}]{1,3}[^\s"'`()[\]{}<>,;:|*?/\\]{1,64}){0,6}[ ()[\]{}]{0,3}[/\\][^\s"'`()[\]{}<>,;:|*?]+){0,32}(?::\d+){0,2}/g;

/** Not `\s`, which matches line breaks: a message may contain a megabyte of them, and the search would take hours. */
const stackLines = /^[ \t]+at .*$\n?/gm;

/** What a program learns about an error on the host: its name and message, without stack traces and paths. */
export function programError(error: unknown): HostCallError {
  const { name, message } = partsOf(error);
  const named = pathsOf(error).reduce((text, path) => text.replaceAll(path, "<path>"), message);
  const withoutStack = named
    .replaceAll(stackLines, "")
    .replaceAll(quotedPaths, "$1<path>$1")
    .replaceAll(paths, "<path>");
  const text = withoutStack.length > longestMessage ? `${withoutStack.slice(0, longestMessage)}…` : withoutStack;
  return { name: /^[\w$.]{1,100}$/.test(name) ? name : "Error", message: text };
}

/** The paths that a system error names, whatever characters they have; longest first. */
function pathsOf(error: unknown): string[] {
  if (typeof error !== "object" || error === null) return [];
  const found = (["path", "dest"] as const).flatMap((name) => textOf(error, name) ?? []);
  return found.filter((path) => /^(?:\/|[A-Za-z]:[\\/]|\\\\).{2}/s.test(path)).toSorted((a, b) => b.length - a.length);
}

function partsOf(error: unknown): HostCallError {
  if (typeof error === "string") return { name: "Error", message: error };
  // It may be from another realm, or not an error at all.
  if (typeof error !== "object" || error === null) return { name: "Error", message: "" };
  return { name: textOf(error, "name") ?? "Error", message: textOf(error, "message") ?? "" };
}

/** Returns a property if it is text; reading it may throw. */
function textOf(error: object, property: "name" | "message" | "path" | "dest"): string | undefined {
  try {
    const text: unknown = Reflect.get(error, property);
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}
