import { type HeaderLines, valuesOf } from "../http/header-lines.ts";

/** How special characters are written in a text. */
export type TextKind = "plain" | "form" | "json";

/**
 * The kind of a message's body by its headers; `undefined` if it is not text, or compressed. Without a type it counts as text: many
 * clients send it so.
 */
export function textKind(headers: HeaderLines): TextKind | undefined {
  const encodings = valuesOf(headers, "content-encoding").map((value) => value.trim().toLowerCase());
  if (encodings.some((encoding) => encoding !== "" && encoding !== "identity")) return undefined;
  const [type = ""] = (valuesOf(headers, "content-type")[0] ?? "").toLowerCase().split(";", 1);
  const name = type.trim();
  if (name === "application/x-www-form-urlencoded") return "form";
  if (/^(?:application|text)\/(?:[\w.+-]+\+)?(?:x-)?(?:json|ndjson|jsonl|json-lines|json-seq)$/.test(name)) {
    return "json";
  }
  return name === "" || /^(?:text|multipart)\/|[/+](?:xml|yaml|graphql|javascript)$/.test(name) ? "plain" : undefined;
}
