const identifier = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;

const reserved: ReadonlySet<string> = new Set([
  ..."arguments await break case catch class const continue debugger default delete do else enum eval export".split(
    " ",
  ),
  ..."extends false finally for function if implements import in instanceof interface let new null package".split(" "),
  ..."private protected public return static super switch this throw true try typeof var void while with".split(" "),
  "yield",
]);

/** True for a name that a JavaScript module may bind: `loadData`, `$x`; false for reserved words, `a.b` and `a-b`. */
export function isJavaScriptIdentifier(name: string): boolean {
  return identifier.test(name) && !reserved.has(name);
}
