/**
 * @typedef {object} Fence
 * @property {string} language
 * @property {string} comment - The HTML comment above it, without its marks; empty if there is none.
 * @property {number} line - The opening line, counted from 0.
 * @property {number} end - The closing line.
 * @property {string} indent
 */

/**
 * Finds the fenced code blocks of a Markdown document.
 *
 * @param {readonly string[]} lines
 * @returns {Fence[]}
 */
export function findFences(lines) {
  /** @type {Fence[]} */
  const fences = [];
  for (let line = 0; line < lines.length; line++) {
    const [, indent, marks, language] = /^(\s*)(`{3,}|~{3,})(\w*)/.exec(lines[line] ?? "") ?? [];
    if (indent === undefined || marks === undefined || language === undefined) continue;
    let end = line + 1;
    while (end < lines.length && !closes(lines[end] ?? "", marks)) end++;
    fences.push({ language, comment: commentAbove(lines, line), line, end, indent });
    line = end;
  }
  return fences;
}

/**
 * The region of an example that a fence's comment names: `examples/file.ts#region`.
 *
 * @param {string} comment
 * @returns {{ file: string, region: string } | undefined}
 */
export function namedRegion(comment) {
  const [, file, region] = /^(examples\/[\w./-]+\.ts)#([\w-]+)$/.exec(comment) ?? [];
  return file === undefined || region === undefined ? undefined : { file, region };
}

/**
 * @param {string} line
 * @param {string} marks
 */
function closes(line, marks) {
  const text = line.trim();
  return text.startsWith(marks) && text.replaceAll(marks.slice(0, 1), "") === "";
}

/**
 * @param {readonly string[]} lines
 * @param {number} line
 */
function commentAbove(lines, line) {
  const above = lines.slice(0, line).findLast((text) => text.trim() !== "");
  return /^<!-- (.+) -->$/.exec(above?.trim() ?? "")?.[1] ?? "";
}
