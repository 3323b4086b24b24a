import { randomUUID } from "node:crypto";

/** A part of a body that is JSON already, whose numbers keep their digits. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A body as JSON. */
export function jsonOf(body: unknown): string {
  const parts = new Map<string, string>();
  const text = JSON.stringify(body, (_, value: unknown) => {
    if (!(value instanceof JsonText)) return value;
    const name = randomUUID();
    parts.set(name, value.text);
    return name;
  });
  return [...parts].reduce((whole, [name, part]) => whole.replace(`"${name}"`, () => part), text);
}
