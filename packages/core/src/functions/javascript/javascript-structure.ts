import type { SyntaxNode } from "@lezer/common";
import { parser } from "@lezer/javascript";

/** A node, and what to add to its offsets to get offsets in the text. */
export interface Located {
  readonly node: SyntaxNode;
  readonly shift: number;
}

/** The positions of a function expression's parts. */
export interface JavaScriptStructure {
  readonly text: string;
  readonly isAsync: boolean;
  readonly isGenerator: boolean;
  /** The name that the expression itself declares. */
  readonly ownName: string | undefined;
  /** A `ParamList`. */
  readonly parameters: Located;
  /** The function, or an arrow function with the same body. */
  readonly body: Located;
}

/**
 * Finds the parts of a function expression.
 *
 * @param text - an expression that the engine accepts.
 * @returns `undefined` if it is anything but a single function.
 */
export function javaScriptStructure(text: string): JavaScriptStructure | undefined {
  const node = parseAlone(text);
  const isFunction = node?.name === "FunctionExpression" || node?.name === "ArrowFunction";
  const list = isFunction ? node.getChild("ParamList") : null;
  if (!node || !list) return splitArrow(text);
  const declared = node.getChild("VariableDefinition");
  return {
    text,
    isAsync: node.getChild("async") !== null,
    isGenerator: node.getChild("Star") !== null,
    ownName: declared ? text.slice(declared.from - 1, declared.to - 1) : undefined,
    parameters: { node: list, shift: -1 },
    body: { node, shift: -1 },
  };
}

/** The node of an expression that the text wraps in parentheses; `undefined` if the text contains anything else. */
export function parseAlone(text: string): SyntaxNode | undefined {
  const statement = parser.parse(`(${text})`).topNode.firstChild;
  const node = statement?.firstChild?.firstChild?.nextSibling;
  return node && !statement.nextSibling && node.to === text.length + 1 ? node : undefined;
}

/**
 * lezer cannot parse `({ a } = {}) => a`, but it can parse the parameters in a function, and the arrow without them.
 */
function splitArrow(text: string): JavaScriptStructure | undefined {
  const head = /^async(?=[\s(/])/.exec(text)?.[0] ?? "";
  const opening = "(function";
  const parsed = parser.parse(`${opening}${text.slice(head.length)})`);
  const list = parsed.topNode.firstChild?.firstChild?.firstChild?.nextSibling?.getChild("ParamList");
  if (!list || hasError(list)) return undefined;
  const listShift = head.length - opening.length;
  const end = list.to + listShift;
  const body = parseAlone(`()${text.slice(end)}`);
  if (body?.name !== "ArrowFunction") return undefined;
  return {
    text,
    isAsync: head !== "",
    isGenerator: false,
    ownName: undefined,
    parameters: { node: list, shift: listShift },
    body: { node: body, shift: end - "(()".length },
  };
}

function hasError(node: SyntaxNode): boolean {
  const errors: number[] = [];
  node.cursor().iterate(({ type, from }) => {
    if (type.isError) errors.push(from);
  });
  return errors.length > 0;
}
