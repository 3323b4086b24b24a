/** A field of something that came from outside; `undefined` if there is none. */
export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

/** The same, if it is a text; else an empty one. */
export function textField(value: unknown, name: string): string {
  const found = field(value, name);
  return typeof found === "string" ? found : "";
}

/** The texts among the values of a list; none, if it is no list. */
export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}

/** A time that came from outside, as a file's; nothing if it is not a valid one. */
export function timeOf(milliseconds: number): { readonly modifiedAt?: Date } {
  const modifiedAt = new Date(milliseconds);
  return Number.isNaN(modifiedAt.getTime()) ? {} : { modifiedAt };
}
