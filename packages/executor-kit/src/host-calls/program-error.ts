import type { HostCallError } from "@fenced/core";

const longestMessage = 4000;

/** A path of this host, not part of a URL: at the start, or after a space, a quote or a bracket. */
const paths =
  /(?<=^|[\s"'`([{<=:,])(?:file:\/\/\/?|[A-Za-z]:[\\/]|\\\\|\/(?!\/))[^\s"'`()[\]{}<>,;:|*?]+(?::\d+){0,2}/g;

/** Not `\s`, which matches line breaks: a message may contain a megabyte of them, and the search would take hours. */
const stackLines = /^[ \t]+at .*$\n?/gm;

/** What a program learns about an error on the host: its name and message, without stack traces and paths. */
export function programError(error: unknown): HostCallError {
  const { name, message } = partsOf(error);
  const withoutStack = message.replaceAll(stackLines, "").replaceAll(paths, "<path>");
  const text = withoutStack.length > longestMessage ? `${withoutStack.slice(0, longestMessage)}…` : withoutStack;
  return { name: /^[\w$.]{1,100}$/.test(name) ? name : "Error", message: text };
}

function partsOf(error: unknown): HostCallError {
  if (typeof error === "string") return { name: "Error", message: error };
  // It may be from another realm, or not an error at all.
  if (typeof error !== "object" || error === null) return { name: "Error", message: "" };
  return { name: textOf(error, "name") ?? "Error", message: textOf(error, "message") ?? "" };
}

/** Returns a property if it is text; reading it may throw. */
function textOf(error: object, property: "name" | "message"): string | undefined {
  try {
    const text: unknown = Reflect.get(error, property);
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}
