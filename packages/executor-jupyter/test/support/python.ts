import type { CodeBlock } from "@fenced/core";

/** A Python block. */
export function python(code: string): CodeBlock {
  return { language: "python", code };
}

/** A bash block. */
export function bash(code: string): CodeBlock {
  return { language: "bash", code };
}
