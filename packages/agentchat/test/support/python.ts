/** A fenced Python block. */
export function python(code: string): string {
  return `\`\`\`python\n${code}\n\`\`\``;
}
