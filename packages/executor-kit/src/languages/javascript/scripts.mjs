// Transforms a block's text before QuickJS or Node runs it. Authors write blocks as modules, which import, await, and declare constants.
// Blocks run as scripts, so that their declarations are still there for the next block, and can be declared again.

/**
 * @typedef {{ parse: (text: string, options: object) => any }} Parser - acorn.
 * @typedef {{ start: number, end: number, [key: string]: any }} Node
 */

/** An error in a block's text, with its position. */
export class TextError extends Error {}

/**
 * The script that does what a module with this text would do. Line numbers stay the same.
 *
 * @param {Parser} parser
 * @param {string} text
 * @param {string} name - of the block.
 * @throws TextError if it is not JavaScript.
 */
export function scriptOf(parser, text, name) {
  const program = parsed(parser, text, name);
  /** @type {{ start: number, end: number, text: string }[]} */
  const edits = [];
  /** @type {string[]} */
  const imports = [];
  const blank = (/** @type {number} */ start, /** @type {number} */ end) =>
    edits.push({ start, end, text: text.slice(start, end).replaceAll(/[^\n\r\u2028\u2029]/g, " ") });
  const visit = (/** @type {Node} */ node) => {
    if (node.type === "ImportDeclaration") {
      imports.push(importOf(node));
      blank(node.start, node.end);
    } else if (/^Export(?:Named|All)Declaration$/.test(node.type) && !node.declaration) {
      if (node.source) imports.push(`await import(${node.source.raw});`);
      blank(node.start, node.end);
    } else if (node.type === "ExportNamedDeclaration") {
      blank(node.start, node.declaration.start);
      visit(node.declaration);
    } else if (node.type === "ExportDefaultDeclaration") {
      const named = node.declaration.id && node.declaration.type.endsWith("Declaration");
      edits.push({ start: node.start, end: node.declaration.start, text: named ? "" : "void (" });
      if (named) visit(node.declaration);
      else edits.push({ start: node.declaration.end, end: node.declaration.end, text: ")" });
    } else if (node.type === "VariableDeclaration" && node.kind !== "var") edits.push(...asVar(node));
    else if (node.type === "ClassDeclaration") {
      edits.push({ start: node.start, end: node.start, text: `var ${node.id.name} = ` });
      edits.push({ start: node.end, end: node.end, text: ";" });
    }
  };
  for (const node of program.body) visit(node);
  let script = imports.join(" ");
  let at = 0;
  for (const edit of edits) {
    script += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return script + text.slice(at);
}

/**
 * Whether a file uses the syntax of ES modules.
 *
 * @param {Parser} parser
 * @param {string} text
 */
export function isModule(parser, text) {
  try {
    return parser
      .parse(text, syntax)
      .body.some((/** @type {Node} */ { type }) => /^(?:Import|Export).*Declaration$/.test(type));
  } catch {
    return false;
  }
}

const syntax = { ecmaVersion: "latest", sourceType: "module", allowHashBang: true };

/**
 * @param {Parser} parser
 * @param {string} text
 * @param {string} name
 * @returns {{ body: Node[] }}
 */
function parsed(parser, text, name) {
  try {
    return parser.parse(text, syntax);
  } catch (error) {
    const { message, loc } = /** @type {{ message: string, loc?: { line: number, column: number } }} */ (error);
    if (!loc) throw new TextError(`SyntaxError: ${message}`, { cause: error });
    const line = text.split("\n")[loc.line - 1] ?? "";
    const words = message.replace(/ \(\d+:\d+\)$/, "");
    const where = `${name}:${loc.line}\n${line.slice(0, 1000)}\n${" ".repeat(Math.min(loc.column, 1000))}^\n`;
    throw new TextError(`${where}SyntaxError: ${words}`, { cause: error });
  }
}

/** @param {Node} node */
function importOf({ specifiers, source }) {
  const loads = `await import(${source.raw})`;
  const whole = specifiers.find((/** @type {Node} */ { type }) => type === "ImportNamespaceSpecifier");
  const names = specifiers.filter((/** @type {Node} */ each) => each !== whole);
  const fields = names.map((/** @type {Node} */ { type, imported, local }) => {
    const name = type === "ImportDefaultSpecifier" ? "default" : (imported.name ?? imported.value);
    const message = `The module ${source.value} does not provide an export named '${name}'`;
    const missing = `(() => { throw new SyntaxError(${JSON.stringify(message)}) })()`;
    return `${JSON.stringify(name)}: ${local.name} = ${missing}`;
  });
  const parts = [];
  if (whole) parts.push(`${whole.local.name} = ${loads}`);
  if (fields.length > 0) parts.push(`{ ${fields.join(", ")} } = ${whole ? whole.local.name : loads}`);
  return parts.length === 0 ? `${loads};` : `var ${parts.join(", ")};`;
}

/** @param {Node} node */
function asVar(node) {
  const edits = [{ start: node.start, end: node.start + node.kind.length, text: "var".padEnd(node.kind.length) }];
  // A declaration that runs again resets its variable.
  for (const { init, id } of node.declarations) {
    if (!init) edits.push({ start: id.end, end: id.end, text: " = undefined" });
  }
  return edits;
}
