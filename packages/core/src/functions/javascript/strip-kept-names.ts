import { childrenOf } from "../syntax-nodes.ts";
import type { JavaScriptStructure, Located } from "./javascript-structure.ts";

/**
 * Removes `__name(value, "name")`, which esbuild, and so tsx, puts around functions inside a function when it keeps
 * names. The helper does not exist where the function goes.
 */
export function stripKeptNames({ text, parameters, body }: JavaScriptStructure): string {
  if (!text.includes("__name(")) return text;
  const parts = new Map([parameters, body].flatMap((located) => superfluousParts(text, located)));
  let kept = "";
  let position = 0;
  for (const [from, to] of [...parts].toSorted(([a], [b]) => a - b)) {
    kept += text.slice(position, from);
    position = to;
  }
  return kept + text.slice(position);
}

/** The text around the values, as pairs of start and end offsets. */
function superfluousParts(text: string, { node, shift }: Located): [from: number, to: number][] {
  const parts: [number, number][] = [];
  node.cursor().iterate((reference) => {
    const [callee, list] = reference.name === "CallExpression" ? childrenOf(reference.node) : [];
    const [, value, comma, name, end] = list ? childrenOf(list) : [];
    if (!callee || !value || comma?.name !== "," || name?.name !== "String" || !end) return;
    if (text.slice(callee.from + shift, callee.to + shift) !== "__name") return;
    parts.push([callee.from + shift, value.from + shift], [value.to + shift, end.to + shift]);
  });
  return parts;
}
