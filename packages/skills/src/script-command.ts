import { readFileSync } from "node:fs";
import { InvalidInputError } from "@fenced/core";
import { refused } from "./refused.ts";

/** A script of a skill, and what it is run with. */
export interface SkillScript {
  /** The skill's directory, where the code runs: absolute, or relative to the workspace. */
  readonly directory: string;
  /** Relative to the skill's directory. */
  readonly path: string;
  readonly args: readonly string[];
  /** Its first line. */
  readonly firstLine: string;
  /** The message printed if the script is missing where the code runs. */
  readonly missing: string;
}

const runScript: string = readFileSync(new URL("./run_script.py", import.meta.url), "utf8");

const bySuffix: Readonly<Record<string, readonly string[]>> = {
  py: ["python3"],
  sh: ["sh"],
  bash: ["bash"],
  js: ["node"],
  mjs: ["node"],
  cjs: ["node"],
  rb: ["ruby"],
  pl: ["perl"],
};

/**
 * The interpreter and its options: by the script's first line, otherwise by its suffix. Without the interpreter's directory:
 * `/usr/local/bin/python3` of the author's machine may be elsewhere.
 *
 * @throws InvalidInputError if it cannot be told.
 */
function interpreterOf({ path, firstLine }: Pick<SkillScript, "path" | "firstLine">): readonly string[] {
  const line = /^#!\s*(\S+)[ \t]*(.*?)\s*$/.exec(firstLine.slice(0, 256));
  const words = (line?.[2] ?? "").split(/\s+/).filter((word) => word !== "");
  const program = line?.[1]?.split("/").at(-1);
  const command = program === "env" ? words.filter((word, index) => index > 0 || word !== "-S") : [program, ...words];
  const [first] = command;
  if (first !== undefined && /^[A-Za-z0-9][\w.+-]*$/.test(first)) return command.filter((word) => word !== undefined);
  const known = bySuffix[/\.([a-z]+)$/.exec(path)?.[1] ?? ""];
  if (known) return known;
  throw refused(
    `It is not known which program runs ${JSON.stringify(path)}`,
    "Run a script that begins with a line such as `#!/usr/bin/env python3`, or ends in .py, .sh or .js.",
  );
}

/** A shell program that runs a script in the workspace. */
export function shellProgram(script: SkillScript): string {
  const command = interpreterOf(script).map(quote).join(" ");
  const isAbsolute = script.directory.startsWith("/");
  return `SKILL_DIR=${isAbsolute ? quote(script.directory) : `"$PWD"/${quote(script.directory)}`}
export SKILL_DIR
[ -f "$SKILL_DIR"/${quote(script.path)} ] || { echo ${quote(script.missing)}; exit 127; }
PYTHONDONTWRITEBYTECODE=1 exec ${command} "$SKILL_DIR"/${quote(script.path)} ${script.args.map(quote).join(" ")}
`;
}

/** A Python program that does the same, for executors without a shell. The session's own arguments come back at the end. */
export function pythonProgram(script: SkillScript): string {
  const [interpreter = ""] = interpreterOf(script);
  if (!/^python[\d.]*$/.test(interpreter)) {
    throw new InvalidInputError(`This executor runs Python, but ${script.path} is for ${interpreter}`, {
      remedy: "Use an executor with a shell, such as a container.",
    });
  }
  const values = [script.directory, script.path, script.missing].map(pythonText).join(", ");
  return `${runScript}\n_fenced_run_script(${values}, [${script.args.map(pythonText).join(", ")}])\n`;
}

/** One word for a shell, whatever it contains. */
function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** A Python literal: JSON's escapes mean the same there. */
function pythonText(text: string): string {
  return JSON.stringify(text);
}
