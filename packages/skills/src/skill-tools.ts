import { randomUUID } from "node:crypto";
import {
  canonicalLanguage,
  type CodeExecutor,
  codeResultForModel,
  InvalidInputError,
  knownCapabilities,
  shortenMiddle,
  showHidden,
} from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import * as z from "zod";
import { type ApproveSkill, Consent } from "./consent.ts";
import { pythonProgram, type SkillScript, shellProgram } from "./script-command.ts";
import type { SkillTool, SkillToolCallOptions } from "./skill-tool.ts";
import type { Skill, SkillFile } from "./skill.ts";

/** Options of `Skills.tools`; all are optional. */
export interface SkillToolsOptions {
  /**
   * Decides whether the scripts of a skill may run, once for each content of its files. Without it, only those of
   * `approved` run.
   */
  readonly approve?: ApproveSkill | undefined;
  /** Digests of skills whose scripts run without a question: `Skill.digest` of those that you have reviewed. Default: none. */
  readonly approved?: Iterable<string> | undefined;
  /**
   * Copy a skill's files into the workspace before each script, for an executor that cannot share a directory of this
   * host. Code can change these copies while the script runs. Default: false, which needs `Skills.directory` to be shared.
   */
  readonly copy?: boolean | undefined;
  /** Where the executor sees `Skills.directory`. Default: at the same path. */
  readonly directory?: string | undefined;
  /** Time limit of a script in milliseconds; `Infinity` for no limit. Default: the executor's. */
  readonly timeoutMs?: number | undefined;
  /** Maximum characters of a tool's result. Default: 30,000. */
  readonly maxCharacters?: number | undefined;
  /** List the skills in the description of `load_skill`. If false, put `Skills.catalogue()` into the prompt. Default: true. */
  readonly catalogue?: boolean | undefined;
}

/** What the tools need of the skills. */
export interface SkillLibrary {
  readonly names: readonly string[];
  readonly directory: string;
  catalogue(): string;
  /** Reads a skill again. */
  current(name: string): Promise<Skill>;
  /** Makes sure that the copy of a skill is still what was read. @throws InvalidInputError if it cannot be made again. */
  verify(skill: Skill): Promise<void>;
  readFile(skill: Skill, file: SkillFile): Promise<Buffer>;
  /** Where a skill is below `directory`. */
  placeOf(skill: Skill): string;
}

/** Where copies are in the workspace. */
const copies = ".skills";
/** Maximum characters of all arguments of a script. */
const mostArguments = 32_768;

/** Makes the tools; without an executor, those that read. */
export function skillTools(
  library: SkillLibrary,
  executor: CodeExecutor | undefined,
  options: SkillToolsOptions,
): Readonly<Record<string, SkillTool>> {
  const [first, ...others] = library.names;
  if (first === undefined) return {};
  const name = z.enum([first, ...others]);
  const { maxCharacters = 30_000, catalogue = true } = options;
  const list = catalogue ? `\n\n${library.catalogue()}` : "";

  const loadSkill = makeTool({
    name: "load_skill",
    description: `Returns the instructions of a skill and the list of its files. Load a skill before you work on a task that it is for.${list}`,
    schema: z.object({ name }),
    execute: async (input) => {
      const skill = await library.current(input.name);
      return shortenMiddle(await describeSkill(library, skill, executor !== undefined), maxCharacters);
    },
  });
  const readSkillFile = makeTool({
    name: "read_skill_file",
    description: `Reads a text file of a skill, at most ${maxCharacters} characters a call.`,
    schema: z.object({
      name,
      path: z.string().describe("Relative to the skill's directory, as load_skill lists it."),
      offset: z.int().min(0).default(0).describe("The character to begin at."),
    }),
    execute: async ({ path, offset, ...input }) => {
      const skill = await library.current(input.name);
      const text = await readText(library, skill, fileOf(skill, path));
      const end = offset + maxCharacters;
      return text.length <= end
        ? showHidden(text.slice(offset))
        : `${showHidden(text.slice(offset, end))}\n[${text.length - end} more characters: continue at offset ${end}]`;
    },
  });
  const reading = { load_skill: loadSkill, read_skill_file: readSkillFile };
  if (!executor) return reading;

  const reviewed = [...(options.approved ?? [])];
  const consent = new Consent(reviewed);
  const consents = new WeakMap<ApproveSkill, Consent>();
  /** An answer of one call's user is no answer for another's. */
  const consentOf = (approve: ApproveSkill | undefined): Consent => {
    if (approve === undefined) return consent;
    const own = consents.get(approve) ?? new Consent(reviewed);
    consents.set(approve, own);
    return own;
  };
  const runSkillScript = makeTool({
    name: "run_skill_script",
    description:
      "Runs a script of a skill, with the workspace as its working directory; SKILL_DIR is the skill's directory, which is read-only. Returns what it prints.",
    schema: z.object({
      name,
      script: z.string().describe("Its path in the skill, such as scripts/convert.py."),
      args: z.array(z.string()).default([]).describe("Its arguments."),
      stdin: z.string().optional().describe("What it reads from its standard input. Default: nothing."),
    }),
    execute: async ({ args, stdin, ...input }, call) => {
      assertArguments(args);
      const skill = await library.current(input.name);
      const file = fileOf(skill, input.script);
      const signal = joinSignals(call.signal, call.abortSignal);
      const request = { skill, script: file.path, args, stdin, signal };
      const answer = await consentOf(call.approve).ask(request, call.approve ?? options.approve);
      if (!answer.approved) return `The script did not run: not approved. ${showHidden(answer.reason ?? "")}`.trimEnd();
      // An answer may take minutes, in which code without a fence can change the copy.
      await library.verify(skill);
      return runScript(library, executor, { ...request, file, options });
    },
  });
  return { ...reading, run_skill_script: runSkillScript };
}

function makeTool<Schema extends z.ZodObject>({
  schema,
  execute,
  ...words
}: {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly execute: (input: z.output<Schema>, call: SkillToolCallOptions) => Promise<string>;
}): SkillTool {
  return {
    ...words,
    inputSchema: schema,
    parameters: schema,
    execute: async (input, call) => {
      const parsed = schema.safeParse(input);
      if (parsed.success) return execute(parsed.data, call);
      throw new InvalidInputError(`The arguments are not valid: ${z.prettifyError(parsed.error)}`, {
        remedy: "Correct them, and call the tool again.",
      });
    },
  };
}

async function describeSkill(library: SkillLibrary, skill: Skill, runs: boolean): Promise<string> {
  const document = await readText(library, skill, fileOf(skill, "SKILL.md"));
  const others = skill.files.filter(({ path }) => path !== "SKILL.md");
  const lines = others.map(({ path, size }) => `- ${path} (${size} bytes)`);
  const how = `Read files with read_skill_file${runs ? "; run scripts with run_skill_script" : ""}.`;
  return [
    showHidden(document.replaceAll("\r\n", "\n")).trimEnd(),
    `---\nFiles of the skill ${skill.name}${lines.length === 0 ? ": none besides SKILL.md." : `. ${how}`}`,
    ...lines,
  ].join("\n");
}

function fileOf(skill: Skill, path: string): SkillFile {
  const wanted = path.replace(/^(?:\.\/)+/, "");
  const file = skill.files.find((each) => each.path === wanted);
  if (file) return file;
  throw new InvalidInputError(`The skill ${skill.name} has no file ${JSON.stringify(path.slice(0, 200))}`, {
    remedy: "Use a path that load_skill lists.",
  });
}

/** @throws InvalidInputError if it is not text. */
async function readText(library: SkillLibrary, skill: Skill, file: SkillFile): Promise<string> {
  const bytes = await library.readFile(skill, file);
  try {
    if (!bytes.includes(0)) return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    // Reported below.
  }
  throw new InvalidInputError(`${file.path} of the skill ${skill.name} is not text`, {
    remedy: "Use a script of the skill to work with it.",
  });
}

function assertArguments(args: readonly string[]): void {
  const count = args.reduce((sum, arg) => sum + arg.length + 1, 0);
  if (count <= mostArguments && !args.some((arg) => arg.includes("\0"))) return;
  throw new InvalidInputError(`The arguments have more than ${mostArguments} characters, or one that is NUL`, {
    remedy: "Write them to a file of the workspace, or pass them as stdin.",
  });
}

interface Run {
  readonly skill: Skill;
  readonly file: SkillFile;
  readonly args: readonly string[];
  readonly stdin: string | undefined;
  readonly signal: AbortSignal;
  readonly options: SkillToolsOptions;
}

async function runScript(library: SkillLibrary, executor: CodeExecutor, run: Run): Promise<string> {
  const { skill, file, args, stdin, signal, options } = run;
  const { copy = false, timeoutMs, maxCharacters = 30_000 } = options;
  const bytes = await library.readFile(skill, file);
  const [firstLine = ""] = bytes.subarray(0, 256).toString("latin1").split(/\r?\n/, 1);
  const directory = copy
    ? await copySkill(library, executor, skill)
    : `${(options.directory ?? library.directory).replace(/\/+$/, "")}/${library.placeOf(skill)}`;
  // One that does not know what it runs before it has started; a stopped one stays stopped.
  if (!knownCapabilities(executor)) await executor.start({ signal });
  const missing = `There is no script ${file.path} (${randomUUID()})`;
  const block = blockOf(executor, { directory, path: file.path, args, firstLine, missing });
  const result = await executor.executeCodeBlocks([block], {
    signal,
    ...(stdin === undefined ? {} : { stdin }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  if (!copy && result.output.includes(missing)) throw notShared();
  return codeResultForModel(result, 1, { maxOutputCharacters: maxCharacters }).text;
}

function blockOf(executor: CodeExecutor, script: SkillScript): { readonly language: string; readonly code: string } {
  const shell = shellOf(executor);
  if (shell !== undefined) return { language: shell, code: shellProgram(script) };
  return { language: "python", code: pythonProgram(script) };
}

function shellOf({ capabilities }: CodeExecutor): string | undefined {
  const languages = capabilities.languages.map(canonicalLanguage);
  return ["sh", "bash"].find((language) => languages.includes(language));
}

/** A fresh copy: code may have changed the last one. */
async function copySkill(library: SkillLibrary, { files }: CodeExecutor, skill: Skill): Promise<string> {
  const directory = `${copies}/${library.placeOf(skill)}`;
  await files.remove(directory).catch(() => {});
  for (const file of skill.files) await files.write(`${directory}/${file.path}`, await library.readFile(skill, file));
  return directory;
}

function notShared(): InvalidInputError {
  return new InvalidInputError("The code does not see the directory of the skills", {
    remedy:
      "Share `skills.directory` with the executor, read-only: `readable` of an OS sandbox, `extraVolumes` of a container. Where that is not possible, set `copy: true`.",
    option: "copy",
  });
}
