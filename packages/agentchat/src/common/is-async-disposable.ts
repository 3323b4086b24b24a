/** True for an object that `await using` can dispose of. */
export function isAsyncDisposable(value: object): value is AsyncDisposable {
  return Symbol.asyncDispose in value && typeof value[Symbol.asyncDispose] === "function";
}
