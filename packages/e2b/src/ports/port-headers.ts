import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isSameSecret } from "@fenced/core/runtime";
import type { Sandbox } from "../control/sandbox.ts";

/** Headers with all of their values. */
export type HeaderValues = Readonly<Record<string, readonly string[]>>;

/** What is for this server, and no program in a sandbox should see. */
const ownHeaders: ReadonlySet<string> = new Set(["e2b-sandbox-id", "e2b-sandbox-port", "e2b-traffic-access-token"]);
/** What is about one connection, which differs from the next one. */
const connectionHeaders: ReadonlySet<string> = new Set([
  "connection",
  "expect",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The headers of a request for a program that listens on a port of a sandbox. */
export function headersForProgram(
  headers: HeaderValues,
  { token, settings: { maskRequestHost: mask } }: Pick<Sandbox, "token" | "settings">,
  port: number,
): Record<string, string[]> {
  const own = (name: string, values: readonly string[]): boolean =>
    ownHeaders.has(name) || (name === "x-access-token" && token !== undefined && isSameSecret(token, values[0]));
  const passed = passedOn(headers, own);
  return mask === undefined ? passed : { ...passed, host: [mask.replace("${PORT}", `${port}`)] };
}

/** The headers of a program's answer, for its client. */
export function headersForClient({ headersDistinct }: IncomingMessage): Record<string, string[]> {
  return passedOn(valuesOf(headersDistinct), () => false);
}

/** The headers of a message of Node. */
export function valuesOf(headers: NodeJS.Dict<string[]> | IncomingHttpHeaders): HeaderValues {
  const all: Record<string, readonly string[]> = {};
  for (const [name, values] of Object.entries(headers)) {
    if (values !== undefined) all[name] = typeof values === "string" ? [values] : values;
  }
  return all;
}

function passedOn(
  headers: HeaderValues,
  isDropped: (name: string, values: readonly string[]) => boolean,
): Record<string, string[]> {
  const named = new Set(
    (headers["connection"] ?? []).flatMap((value) => value.split(",")).map((name) => name.trim().toLowerCase()),
  );
  const kept: Record<string, string[]> = {};
  for (const [name, values] of Object.entries(headers)) {
    if (connectionHeaders.has(name) || named.has(name) || isDropped(name, values)) continue;
    kept[name] = [...values];
  }
  return kept;
}
