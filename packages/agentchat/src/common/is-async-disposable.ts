/** True for what `await using` would end. */
export function isAsyncDisposable(value: object): value is AsyncDisposable {
  return Symbol.asyncDispose in value && typeof value[Symbol.asyncDispose] === "function";
}
