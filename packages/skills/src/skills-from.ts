import path from "node:path";
import { type CodeExecutor, FencedError, showHidden } from "@fenced/core";
import {
  checkOptions,
  callbackOption,
  codeExecutorOption,
  optionsSchema,
  type OptionSchemas,
  timeLimitOption,
  wholeNumberOption,
} from "@fenced/core/options";
import { errorCode } from "@fenced/executor-kit";
import * as z from "zod";
import type { ApproveSkill } from "./consent.ts";
import { findSkills } from "./find-skills.ts";
import { parseSkillDocument, type SkillDocument } from "./front-matter.ts";
import { refused } from "./refused.ts";
import { readCopied, SkillCopies } from "./skill-copies.ts";
import type { SkillTool } from "./skill-tool.ts";
import { skillTools, type SkillToolsOptions } from "./skill-tools.ts";
import type { Skill, SkillFile, SkillWarning } from "./skill.ts";

/** Maximum number of skills: a model reads each one's description. */
const mostSkills = 200;
/** Maximum bytes of `SKILL.md`. */
const mostDocumentBytes = 1_048_576;

const directories = z.object({
  directories: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)], "must be a path, or several"),
});

const toolsOptions = optionsSchema({
  executor: codeExecutorOption.exactOptional(),
  approve: callbackOption<ApproveSkill>().exactOptional(),
  approved: z
    .custom<Iterable<string>>(
      (value) => typeof value === "object" && value !== null && Symbol.iterator in value,
      "must be digests",
    )
    .exactOptional(),
  copy: z.boolean().exactOptional(),
  directory: z.string().startsWith("/").exactOptional(),
  timeoutMs: timeLimitOption.exactOptional(),
  maxCharacters: wholeNumberOption({ from: 1, unit: "characters" }).exactOptional(),
  catalogue: z.boolean().exactOptional(),
} satisfies OptionSchemas<SkillToolsOptions & { readonly executor?: CodeExecutor | undefined }>);

/**
 * Reads Agent Skills: the skill in a directory with a `SKILL.md`, or those in its subdirectories, at most six levels down.
 * Reads strictly: a directory that breaks a rule of the format, or has a link in it, is left out and reported in
 * `warnings`. If two skills have the same name, the first one counts.
 *
 * @param from - the directory, or several.
 * @returns the skills; dispose of them to delete the copies that were made.
 * @throws InvalidInputError if a directory does not exist, or has more than 2,000 directories.
 *
 * @example
 * await using skills = await skillsFrom("skills");
 * await using executor = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", readable: [skills.directory] });
 * const tools = skills.tools(executor, { approve: ({ skill }) => ask(`Run scripts of ${skill.name}?`) });
 * await generateText({ model, tools, stopWhen: stepCountIs(10), prompt });
 */
export async function skillsFrom(from: string | readonly string[]): Promise<Skills> {
  const checked = checkOptions(directories, { directories: from }, "skillsFrom").directories;
  const places = [checked].flat().map((place) => path.resolve(place));
  const copies = await SkillCopies.create();
  try {
    return await Skills.read(places, copies);
  } catch (error) {
    await copies[Symbol.asyncDispose]();
    throw error;
  }
}

/** Skills of a directory, and the tools for a model to use them. */
export class Skills implements AsyncDisposable {
  /** What was left out, and why. */
  readonly warnings: readonly SkillWarning[];
  readonly #copies: SkillCopies;
  readonly #skills: Map<string, Skill>;

  private constructor(copies: SkillCopies, skills: Map<string, Skill>, warnings: readonly SkillWarning[]) {
    this.#copies = copies;
    this.#skills = skills;
    this.warnings = warnings;
  }

  /** @internal Reads the skills; see `skillsFrom`. */
  static async read(places: readonly string[], copies: SkillCopies): Promise<Skills> {
    const skills = new Map<string, Skill>();
    const warnings: SkillWarning[] = [];
    for (const place of places) {
      const found = await findSkills(place);
      warnings.push(...found.warnings);
      for (const source of found.directories) {
        try {
          // A skill has the name of its directory.
          const name = path.basename(source);
          if (skills.has(name)) throw refused(`Another skill is named ${name}`, "Rename one of them.");
          if (skills.size >= mostSkills) throw refused(`There are ${mostSkills} skills already`, "Remove some.");
          skills.set(name, await readSkill(source, copies));
        } catch (error) {
          if (!FencedError.isInstance(error)) throw error;
          warnings.push({ path: source, message: error.message });
        }
      }
    }
    return new Skills(copies, skills, warnings);
  }

  /** The skills as they were read last, sorted by name. Each use of a tool reads its skill again. */
  get all(): readonly Skill[] {
    return [...this.#skills.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  /**
   * Absolute path of a directory of this program's own with copies of the skills, which scripts run from. Share it with the
   * executor, read-only.
   */
  get directory(): string {
    return this.#copies.directory;
  }

  /** A list of the skills for a prompt, one line each, and how to use them; empty if there are none. */
  catalogue(): string {
    const lines = this.all.map(({ name, description }) => `- ${name}: ${oneLine(description)}`);
    if (lines.length === 0) return "";
    return [
      "Skills are instructions and scripts for particular tasks. If a task matches a skill, load it with load_skill first.",
      ...lines,
    ].join("\n");
  }

  /**
   * Creates the tools `load_skill`, `read_skill_file` and, with an executor, `run_skill_script`: for the Vercel AI SDK as
   * they are, and for agents of `@fenced/agentchat` as `Object.values(…)`. Without skills there are none. Each call makes
   * tools that ask for approval by themselves, so that one user's answer is not another's.
   *
   * @param executor - where scripts run: in the workspace, with what the executor allows. You stop it.
   * @throws InvalidInputError if an option is unknown or wrong.
   */
  tools(executor?: CodeExecutor, options: SkillToolsOptions = {}): Readonly<Record<string, SkillTool>> {
    const { executor: checked, ...rest } = checkOptions(toolsOptions, { ...options, executor }, "Skills.tools");
    return skillTools(
      {
        names: this.all.map(({ name }) => name),
        directory: this.directory,
        catalogue: () => this.catalogue(),
        current: (name) => this.#current(name),
        verify: (skill) => this.#verify(skill),
        readFile: (skill, file) => this.#readFile(skill, file),
        placeOf: (skill) => this.#copies.relativePlaceOf(skill.name, skill),
      },
      checked,
      rest,
    );
  }

  async #current(name: string): Promise<Skill> {
    const known = this.#skills.get(name);
    if (!known) throw refused(`There is no skill ${JSON.stringify(name)}`, "Use a name of the catalogue.");
    const skill = await explained(name, readSkill(known.source, this.#copies));
    this.#skills.set(name, skill);
    return skill;
  }

  async #verify(skill: Skill): Promise<void> {
    if (await explained(skill.name, this.#copies.holds(skill.name, skill))) return;
    const { digest } = await this.#current(skill.name);
    if (digest !== skill.digest) {
      throw refused(
        `The files of the skill ${skill.name} were changed after they had been approved`,
        "Call the tool again.",
      );
    }
  }

  #readFile(skill: Skill, file: SkillFile): Promise<Buffer> {
    return explained(skill.name, this.#copies.read(skill.name, skill, file));
  }

  /** Deletes the copies. Tools cannot be used any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#copies[Symbol.asyncDispose]();
  }
}

/** Says what a model can read: errors of the system name paths of this host. */
async function explained<T>(name: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined || FencedError.isInstance(error)) throw error;
    throw refused(
      `The files of the skill ${name} cannot be read or copied (${code})`,
      "Its directory or this program's temporary files are gone, or the disk is full: read the folder again with skillsFrom().",
      error,
    );
  }
}

/** @throws InvalidInputError if it is not accepted as a skill. */
async function readSkill(source: string, copies: SkillCopies): Promise<Skill> {
  const name = path.basename(source);
  return { ...(await copies.take(name, source, (top, files) => readFields(name, top, files))), source };
}

async function readFields(
  name: string,
  top: string,
  files: readonly SkillFile[],
): Promise<Omit<SkillDocument, "body">> {
  const { body: _, ...document } = parseSkillDocument(await readDocument(top, files));
  if (document.name !== name) {
    throw refused(
      `The skill is named ${document.name}, but its directory ${showHidden(name)}`,
      "Give both the same name.",
    );
  }
  return document;
}

async function readDocument(top: string, files: readonly SkillFile[]): Promise<string> {
  const file = files.find((each) => each.path === "SKILL.md");
  if (!file) throw refused("It has no SKILL.md", "Write one, with a name and a description.");
  if (file.size > mostDocumentBytes) {
    throw refused(`SKILL.md has more than ${mostDocumentBytes} bytes`, "Move text to files of the skill.");
  }
  return (await readCopied(top, file)).toString("utf8");
}

/** A description cannot look like another entry of the list, nor hide anything. */
function oneLine(text: string): string {
  return showHidden(text.replaceAll(/\s+/g, " "));
}
