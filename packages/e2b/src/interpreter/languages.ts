import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { JsonObject } from "@fenced/core";
import { cellScripts, interpreterText, notebookModule, plotsModule } from "@fenced/executor-kit/interpreter";

const charts: string = readFileSync(new URL("./programs/charts.py", import.meta.url), "utf8");
const cells: string = readFileSync(new URL("./programs/cells.py", import.meta.url), "utf8");
const node: string = readFileSync(new URL("./programs/node.cjs", import.meta.url), "utf8");

/** A language of code, as clients are told its name. */
export interface Language {
  readonly name: string;
  /** What must be in a sandbox. */
  readonly needs: string;
  /** The first request to the program that runs a context, without the directory; `undefined` if this server cannot run it. */
  readonly start?: () => JsonObject;
}

const python: Language = {
  name: "python",
  needs: "Python 3.8 or later",
  start: () => ({
    kind: "python",
    program: interpreterText({
      // JSON strings are Python strings as well.
      _fenced_notebook: `${notebookModule}\nPLOTS = ${JSON.stringify(plotsModule)}\n`,
      _fenced_charts: charts,
      _fenced_cells: cells,
    }),
  }),
};
const bash: Language = { name: "bash", needs: "bash", start: () => ({ kind: "bash" }) };

const javascript: Language = {
  name: "javascript",
  needs: "Node.js 20.12 or later",
  start: () => startNode("javascript"),
};
const typescript: Language = {
  name: "typescript",
  needs: "Node.js 20.12 or later",
  start: () => startNode("typescript"),
};
// E2B runs these as well.
const missing: readonly Language[] = ["r", "java"].map((name) => ({ name, needs: "" }));
const languages: readonly Language[] = [python, javascript, typescript, bash, ...missing];
const others: ReadonlyMap<string, string> = new Map([
  ["js", "javascript"],
  ["ts", "typescript"],
]);

/** The language of code that names none. */
export const defaultLanguage: Language = python;
/** The languages of the contexts that every sandbox has from its start. */
export const firstLanguages: readonly Language[] = [python, javascript];

/** The language with this name, in upper or lower case. `undefined`: there is none. */
export function findLanguage(given: string): Language | undefined {
  const name = given.trim().toLowerCase();
  return languages.find((each) => each.name === (others.get(name) ?? name));
}

/** The names of all languages that this server can run, for error messages. */
export function languageNames(): string {
  return languages.flatMap(({ name, start }) => (start ? [name] : [])).join(", ");
}

/** Node gets the programs that it needs over a pipe, since the sandbox has no files of this server. */
function startNode(language: string): JsonObject {
  const { resolve } = createRequire(import.meta.url);
  const compiler =
    language === "typescript" ? { typescript: readFileSync(resolve("@swc/wasm-typescript"), "utf8") } : {};
  const files = { parser: readFileSync(resolve("acorn"), "utf8"), scripts: cellScripts, ...compiler };
  return { kind: "node", program: node, files };
}
