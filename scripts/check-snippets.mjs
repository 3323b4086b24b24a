/**
 * Checks that the TypeScript in READMEs and docs matches the examples, which run in CI: a fence names the region that it shows,
 * and must have the same text.
 *
 *     <!-- examples/quick-start.ts#run -->
 *     ```ts
 *     ...
 *     ```
 *
 * A region is between `// #region run` and `// #endregion`; several regions with the same name in a file are joined, with an
 * empty line between them. Code that is not a program, such as a type's signature, goes into a fence marked `typescript`, below a
 * comment that says why: `<!-- not run: a signature -->`.
 *
 * The table in `examples/README.md` must match the examples as well.
 *
 * `--fix` writes the regions into the fences, and the table; another argument is a folder to check instead of this repository.
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
  // From the end, so that a fence that grows does not move those still to be checked.
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
if (process.exitCode !== 1) console.log(`${count} snippets match the examples.`);

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
    return "no comment above the fence names a region of an example: <!-- examples/file.ts#region -->";
  }
  const region = findRegion(named.file, named.region);
  if (region === undefined) return `there is no region "${named.region}" in ${named.file}, or it is not closed`;
  count++;
  const wanted = region.map((text) => (text === "" ? "" : indent + text));
  if (wanted.join("\n") === lines.slice(line + 1, end).join("\n")) return undefined;
  if (!fix) return `the text differs from ${comment}. Run: npm run snippets -- --fix`;
  lines.splice(line + 1, end - line - 1, ...wanted);
  return undefined;
}

/** The files whose fences are checked. */
function documents() {
  const readmes = ["packages", "apps"].flatMap((parent) =>
    entries(parent, false).map((folder) => `${parent}/${folder}/README.md`),
  );
  const docs = entries("docs", true).map((file) => `docs/${file}`);
  const skills = ["packages/core/skills/fenced/SKILL.md"];
  return ["README.md", ...readmes, ...docs, ...skills].filter(
    (file) => file.endsWith(".md") && existsSync(join(root, file)),
  );
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
 * @returns {string[] | undefined} The region's lines without their common indentation.
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
