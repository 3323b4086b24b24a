/** What a block that asks for a file outside the workspace is told. */
export const filenameNotInWorkspace = "Filename is not in the workspace";

/** The path that a block names in its first line, as `# filename: path` or `// filename: path`. */
export function filenameDirective(code: string): string | undefined {
  return /^(?:#|\/\/)[ \t]*filename:[ \t]*(\S(?:[^\r\n]*\S)?)[ \t]*(?:\r?\n|$)/i.exec(code)?.[1];
}
