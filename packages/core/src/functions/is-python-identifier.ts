const identifier = /^[\p{XID_Start}_]\p{XID_Continue}*$/u;

const keywords: ReadonlySet<string> = new Set([
  ..."False None True and as assert async await break class continue def del elif else except finally for".split(" "),
  ..."from global if import in is lambda nonlocal not or pass raise return try while with yield".split(" "),
]);

/** True for a name that Python code may bind: `load_data`, `größe`; false for keywords, `a.b`, `1st` and `a-b`. */
export function isPythonIdentifier(name: string): boolean {
  return identifier.test(name) && !keywords.has(name);
}
