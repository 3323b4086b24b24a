import type { JsonValue, MimeBundle } from "@fenced/core";
import { htmlText } from "./html-text.ts";

/** Characters of a picture's own text that its name includes. */
const longestCaption = 1000;

/** What is shown of a value that has no text of its own: its type and address, as Python and IPython print them. */
const onlyAnAddress =
  /^<[^<>\n]{1,200}?(?: object)?(?: at 0x[\da-f]+)>$|^<[\w. ]{1,200} object>(?:\s+If you see this message[^]*)?$|^HTML widgets cannot be represented in plain text/i;

/**
 * What a reader of text gets of a rich output: its plain text, unless that only says what it is and another type says
 * more; a name in brackets for what has no text, such as a plot; `undefined` for nothing.
 */
export function readableText(bundle: MimeBundle): string | undefined {
  const plain = textOf(bundle, "text/plain");
  if (plain !== "" && !onlyAnAddress.test(plain.trim())) return plain;
  return textOfTypes(bundle) ?? nameOf(bundle) ?? (plain === "" ? undefined : plain);
}

function textOfTypes(bundle: MimeBundle): string | undefined {
  for (const type of ["text/markdown", "text/latex"]) {
    const text = textOf(bundle, type);
    if (text !== "") return text;
  }
  const html = htmlText(textOf(bundle, "text/html"));
  if (html !== "") return html;
  const json = bundle["application/json"];
  if (json !== undefined) return typeof json === "string" ? json : JSON.stringify(json);
  const others = Object.keys(bundle).filter((type) => /^text\/(?!plain|html|javascript)/i.test(type));
  return others.map((type) => textOf(bundle, type)).find((text) => text !== "");
}

/** A name for what can be seen but not read. */
function nameOf(bundle: MimeBundle): string | undefined {
  const types = Object.keys(bundle);
  const vendor = types.find((type) => type.startsWith("application/vnd."));
  if (vendor !== undefined) return bracketed(vendorName(vendor), titleOf(bundle[vendor]));
  if (types.includes("image/svg+xml")) {
    return bracketed("SVG image", htmlText(textOf(bundle, "image/svg+xml")).replaceAll("\n", ", "));
  }
  const [first] = types.filter((type) => type !== "text/plain");
  if (first === undefined) return undefined;
  return bracketed(Object.hasOwn(known, first) ? (known[first] ?? first) : generalName(first));
}

const known: Readonly<Record<string, string>> = {
  "text/html": "HTML output",
  "application/javascript": "JavaScript, not run here",
  "text/javascript": "JavaScript, not run here",
  "application/pdf": "PDF document",
  "application/geo+json": "map, as GeoJSON",
};

/** Libraries whose types do not bear their usual names. */
const vendors: Readonly<Record<string, string>> = {
  plotly: "Plotly plot",
  vega: "Vega plot",
  vegalite: "Vega-Lite plot",
  bokehjs_exec: "Bokeh plot",
  bokehjs_load: "Bokeh, loaded",
  holoviews_exec: "HoloViews plot",
  holoviews_load: "HoloViews, loaded",
  "jupyter.widget-view": "Jupyter widget",
  dataresource: "table",
};

/** `application/vnd.plotly.v1+json` becomes `plotly`. */
function vendorName(type: string): string {
  const name = type
    .slice("application/vnd.".length)
    .replace(/\.v\d.*$|\+\w+$/, "")
    .replace(/\+\w+$/, "");
  return Object.hasOwn(vendors, name) ? (vendors[name] ?? name) : `${name} output`;
}

/** `image/png` becomes `PNG image`. */
function generalName(type: string): string {
  const [kind = "", format = ""] = type.replace(/;.*/, "").split("/");
  return ["image", "audio", "video"].includes(kind) ? `${format.toUpperCase()} ${kind}` : type;
}

function bracketed(name: string, caption = ""): string {
  return caption === "" ? `[${name}]` : `[${name}: ${caption.slice(0, longestCaption)}]`;
}

/** The title of a plot, as plotting libraries write it. */
function titleOf(plot: MimeBundle[string] | undefined): string {
  const titles = [member(member(plot, "layout"), "title"), member(plot, "title")];
  return titles.flatMap((title) => [title, member(title, "text")]).find((title) => typeof title === "string") ?? "";
}

function member(value: MimeBundle[string] | undefined, name: string): JsonValue | undefined {
  const isObject = typeof value === "object" && value !== null && !(value instanceof Uint8Array);
  return isObject && !Array.isArray(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function textOf(bundle: MimeBundle, type: string): string {
  const text = bundle[type];
  return typeof text === "string" ? text : "";
}
