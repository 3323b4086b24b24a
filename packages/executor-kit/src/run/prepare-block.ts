import {
  InvalidInputError,
  languageAmong,
  WorkspacePathError,
  type CodeBlock,
  type ExecuteOptions,
} from "@fenced/core";
import { checkExecuteArguments } from "@fenced/core/options";
import { normalizeWorkspacePath, refuseHome, relativeToWorkspace } from "../workspace/workspace-path.ts";

/** The message for a block that names a file outside the workspace. */
export const filenameNotInWorkspace = "Filename is not in the workspace";

/** @throws InvalidInputError if there is nothing to run, or an option is unknown or wrong. */
export function validateRun(blocks: readonly CodeBlock[], options: ExecuteOptions, takesStdin: boolean): void {
  checkExecuteArguments(blocks, options);
  assertStdin(options, takesStdin);
}

/** @throws InvalidInputError if there is standard input for an executor without. */
export function assertStdin({ stdin }: Pick<ExecuteOptions, "stdin">, takesStdin: boolean): void {
  if (stdin !== undefined && !takesStdin) {
    throw new InvalidInputError("This executor does not support standard input", {
      remedy: "Leave `stdin` out, or write the data to a file with `files.write`.",
    });
  }
}

/** A block that can run, or the sentence that says why it cannot. */
type PreparedBlock =
  | { readonly language: string; readonly code: string; readonly filename?: string }
  | { readonly problem: string };

/** What a session offers to blocks. */
interface BlockSurroundings {
  /** Canonical names of the languages that can run. */
  readonly languages: readonly string[];
  /** Languages that cannot run, each with a sentence that says why. */
  readonly missing: ReadonlyMap<string, string> | undefined;
  /** The work directory, as programs see it; `undefined` if that is not known. */
  readonly workspacePath: string | undefined;
}

/** Reads a block's language and file name. */
export function prepareBlock(
  block: CodeBlock,
  { languages, missing, workspacePath }: BlockSurroundings,
): PreparedBlock {
  const { language: given } = block;
  // An editor's byte order mark is no part of the program, and shells would take it for a part of the first word.
  const code = block.code.replace(/^\uFEFF/, "");
  const language = languageOf(given, code, languages);
  if (!languages.includes(language)) {
    return {
      problem: missing?.get(language) ?? `unknown language "${given}"; this executor runs: ${languages.join(", ")}`,
    };
  }
  const named = filenameDirective(code);
  if (named === undefined) return { language, code: withShebangOptions(language, code) };
  try {
    refuseHome(named);
    return { language, code, filename: normalizeWorkspacePath(relativeToWorkspace(named, workspacePath)) };
  } catch (error) {
    if (WorkspacePathError.isInstance(error)) return { problem: filenameNotInWorkspace };
    if (InvalidInputError.isInstance(error)) return { problem: error.message };
    throw error;
  }
}

/** The program that a block's first line names, or its second after the file name, and the options for it. */
const shebang =
  /^(?:#[ \t]*filename:[^\n]*\n)?#![ \t]*(?:\S*\/env[ \t]+(?:-S[ \t]+)?)?(?:\S*\/)?(\w+)(?:[ \t]+-([A-Za-z]+))?[ \t]*(?:\r?\n|$)/;

/** A script for bash often runs in `sh` without an error, but with wrong results: its first line decides. */
function languageOf(given: string, code: string, languages: readonly string[]): string {
  const language = languageAmong(given, languages);
  if (language !== "sh") return language;
  return shebang.exec(code)?.[1] === "bash" ? "bash" : language;
}

/** The options of a script's first line, such as `-e`, which take effect only if the system runs the script itself. */
function withShebangOptions(language: string, code: string): string {
  if (language !== "bash" && language !== "sh") return code;
  const [line, , options] = shebang.exec(code) ?? [];
  if (line === undefined || options === undefined || !/^[abefhkmnuvxBCEHPT]+$/.test(options)) return code;
  return `set -${options}\n${code.slice(line.length)}`;
}

/** The path that a block names in its first line, as `# filename: path` or `// filename: path`. */
export function filenameDirective(code: string): string | undefined {
  return /^(?:#|\/\/)[ \t]*filename:[ \t]*(\S(?:[^\r\n]*\S)?)[ \t]*(?:\r?\n|$)/i.exec(code)?.[1];
}
