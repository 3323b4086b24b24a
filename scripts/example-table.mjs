import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readSection, renderTable, replaceSection } from "./markdown-table.mjs";

/**
 * Checks that the table in `examples/README.md` matches the examples: what each shows, from its first comment, and what it
 * needs, from its line `// needs: ...`.
 *
 * @param {string} root - The folder of the repository.
 * @param {boolean} fix - Whether to write the table instead.
 * @returns {string | undefined} What is wrong.
 */
export function checkExampleTable(root, fix) {
  const readme = join(root, "examples", "README.md");
  if (!existsSync(readme)) return undefined;
  const text = readFileSync(readme, "utf8");
  const files = readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts"));
  const rows = files.toSorted().map((file) => row(file, readFileSync(join(root, "examples", file), "utf8")));
  const silent = rows.find(([, shows]) => shows === "");
  if (silent !== undefined) return `the first comment of ${silent[0]} does not say what it shows: // Runs a block.`;
  const table = renderTable([["example", "what it shows", "what it needs"], ...rows]);
  if (readSection(text, "examples") === table) return undefined;
  if (!fix) return "the table does not match the examples. Run: npm run snippets -- --fix";
  writeFileSync(readme, replaceSection(text, "examples", table));
  return undefined;
}

/**
 * @param {string} file
 * @param {string} source
 */
function row(file, source) {
  const [comment = ""] = /^(?:\/\/ (?!needs: |#region ).+\n)+/.exec(source) ?? [];
  const shows = comment
    .replaceAll(/^\/\/ /gm, "")
    .trim()
    .replaceAll("\n", " ");
  const needs = /^\/\/ needs: (.+)$/m.exec(source)?.[1] ?? "";
  return [`[${file}](${file})`, shows, needs];
}
