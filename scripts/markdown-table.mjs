/**
 * A Markdown table as the formatter would write it.
 *
 * @param {readonly (readonly string[])[]} rows - The first one is the head.
 */
export function renderTable(rows) {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map(
    (row) => `| ${widths.map((width, column) => (row[column] ?? "").padEnd(width)).join(" | ")} |`,
  );
  const line = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [...lines.slice(0, 1), line, ...lines.slice(1)].join("\n");
}

/**
 * The rows of a Markdown table, without its head.
 *
 * @param {string} text
 */
export function readTable(text) {
  return text
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2)
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

/**
 * Replaces the text between `<!-- NAME -->` and `<!-- end of NAME -->` in a document.
 *
 * @param {string} document
 * @param {string} name
 * @param {string} text
 */
export function replaceSection(document, name, text) {
  const [before, after] = cut(document, name);
  return `${before}\n\n${text}\n\n${after}`;
}

/**
 * The text between `<!-- NAME -->` and `<!-- end of NAME -->` in a document.
 *
 * @param {string} document
 * @param {string} name
 */
export function readSection(document, name) {
  const [before, after] = cut(document, name);
  return document.slice(before.length, document.length - after.length).trim();
}

/**
 * @param {string} document
 * @param {string} name
 * @returns {[before: string, after: string]}
 */
function cut(document, name) {
  const start = `<!-- ${name} -->`;
  const end = `<!-- end of ${name} -->`;
  const [from, to] = [document.indexOf(start), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`The document has no lines ${start} and ${end}.`);
  return [document.slice(0, from + start.length), document.slice(to)];
}
