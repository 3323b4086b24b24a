/** A field of something that came from outside; `undefined` if there is none. */
export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

/** The same if it is a string; else an empty string. */
export function textField(value: unknown, name: string): string {
  const found = field(value, name);
  return typeof found === "string" ? found : "";
}

/** The strings in a list; none if it is not a list. */
export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}

/** A file's modification time that came from outside; nothing if it is not valid. */
export function timeOf(milliseconds: number): { readonly modifiedAt?: Date } {
  const modifiedAt = new Date(milliseconds);
  return Number.isNaN(modifiedAt.getTime()) ? {} : { modifiedAt };
}
