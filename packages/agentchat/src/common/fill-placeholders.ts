/**
 * Fills in the placeholders of a text, such as `{task}`, in one pass: what looks like a placeholder in a value stays text, as does a
 * placeholder without a value.
 */
export function fillPlaceholders(text: string, values: Readonly<Record<string, string>>): string {
  const known = new Map(Object.entries(values));
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => known.get(name) ?? whole);
}
