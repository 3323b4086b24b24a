/** A value as a program in JavaScript may pass it, where any type is expected. */
export function untyped(value: unknown): never {
  return value as never;
}
