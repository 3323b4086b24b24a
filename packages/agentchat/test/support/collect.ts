/** All items of a stream. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** The `type` of each item; "end" for the last. */
export function types(items: readonly object[]): string[] {
  return items.map((item) => ("type" in item ? String(item.type) : "end"));
}
