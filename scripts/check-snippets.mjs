/**
 * Holds the TypeScript in READMEs and docs to the examples, which run: a fence says which region it shows, and its text
 * is the region's.
 *
 *     <!-- examples/quick-start.ts#run -->
 *     ```ts
 *     ...
 *     ```
 *
 * A region lies between `// #region run` and `// #endregion`; several regions of one name in a file make one text, with
 * an empty line between them. What is not a program, a type's signature for one, goes into a fence marked `typescript`,
 * under a comment that says why: `<!-- not run: a signature -->`.
 *
 * The table in `examples/README.md` is held to the examples, too.
 *
 * `--fix` writes the regions into the fences, and the table; another argument names a folder to check instead of this repository.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkExampleTable } from "./example-table.mjs";
import { findFences, namedRegion } from "./fences.mjs";

const fix = process.argv.includes("--fix");
const root = process.argv.slice(2).find((argument) => argument !== "--fix") ?? join(import.meta.dirname, "..");
let count = 0;

for (const document of documents()) {
  const lines = readFileSync(join(root, document), "utf8").split("\n");
  // From the end, so that a fence that grows does not move those that are still to come.
  for (const fence of findFences(lines).toReversed()) {
    const problem = checkFence(lines, fence);
    if (problem === undefined) continue;
    process.exitCode = 1;
    console.error(`${document}:${fence.line + 1}: ${problem}`);
  }
  if (fix) writeFileSync(join(root, document), lines.join("\n"));
}
const problemOfTable = checkExampleTable(root, fix);
if (problemOfTable !== undefined) {
  process.exitCode = 1;
  console.error(`examples/README.md: ${problemOfTable}`);
}
if (process.exitCode !== 1) console.log(`${count} snippets are what the examples say.`);

/**
 * @param {string[]} lines - Changed in place if the fence is to be fixed.
 * @param {import("./fences.mjs").Fence} fence
 * @returns {string | undefined} What is wrong.
 */
function checkFence(lines, { language, comment, line, end, indent }) {
  if (language === "typescript") {
    if (/^not run: ./.test(comment)) return undefined;
    return 'a fence marked typescript needs a comment above it: <!-- not run: why --> (or mark it "ts" and name a region)';
  }
  if (language !== "ts") return undefined;
  const named = namedRegion(comment);
  if (named === undefined) {
    return "no region of an example is named above the fence: <!-- examples/file.ts#region -->";
  }
  const region = findRegion(named.file, named.region);
  if (region === undefined) return `there is no region "${named.region}" in ${named.file}, or it is not closed`;
  count++;
  const wanted = region.map((text) => (text === "" ? "" : indent + text));
  if (wanted.join("\n") === lines.slice(line + 1, end).join("\n")) return undefined;
  if (!fix) return `the text is not that of ${comment}. Run: pnpm snippets --fix`;
  lines.splice(line + 1, end - line - 1, ...wanted);
  return undefined;
}

/** The files whose fences are checked. */
function documents() {
  const readmes = ["packages", "apps"].flatMap((parent) =>
    entries(parent, false).map((folder) => `${parent}/${folder}/README.md`),
  );
  const docs = entries("docs", true).map((file) => `docs/${file}`);
  return ["README.md", ...readmes, ...docs].filter((file) => file.endsWith(".md") && existsSync(join(root, file)));
}

/**
 * @param {string} folder
 * @param {boolean} recursive
 */
function entries(folder, recursive) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive, encoding: "utf8" }).map((file) => file.replaceAll("\\", "/"));
}

/**
 * @param {string} file
 * @param {string} name
 * @returns {string[] | undefined} The region's lines on the left margin.
 */
function findRegion(file, name) {
  if (!existsSync(join(root, file))) return undefined;
  const [, ...pieces] = readFileSync(join(root, file), "utf8").split(new RegExp(`^ *// #region ${name}\n`, "m"));
  const texts = pieces.map((piece) => /^(.*?)^ *\/\/ #endregion$/ms.exec(piece)?.[1]);
  if (texts.length === 0 || !texts.every((text) => text !== undefined)) return undefined;
  return texts.map(dedent).join("\n\n").split("\n");
}

/** @param {string} text */
function dedent(text) {
  const lines = text.trimEnd().split("\n");
  const margin = Math.min(...lines.filter((line) => line !== "").map((line) => line.search(/\S/)));
  return lines.map((line) => line.slice(margin)).join("\n");
}
