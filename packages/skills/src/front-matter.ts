import { showHidden } from "@fenced/core";
import { parseDocument } from "yaml";
import * as z from "zod";
import { refused } from "./refused.ts";

/** What `SKILL.md` says about its skill. */
export interface SkillDocument {
  readonly name: string;
  readonly description: string;
  readonly license?: string;
  readonly compatibility?: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The instructions. */
  readonly body: string;
}

/** Maximum characters of the front matter; its fields have at most about 3,000. */
const mostCharacters = 16_384;
const remedy = "See https://agentskills.io/specification for the format.";

/** Characters as people count them, so that one outside the first plane is one. */
function atMost(limit: number): z.ZodType<string> {
  return z
    .string()
    .trim()
    .min(1)
    .refine((text) => Array.from(text).length <= limit, `must have at most ${limit} characters`);
}

const skillName = z
  .string()
  .max(64)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, "must be lower-case letters, digits and single hyphens");

// Other fields, such as `allowed-tools`, decide nothing here: what a skill may do is up to you, not to the skill.
const fields = z.object({
  name: skillName,
  description: atMost(1024),
  license: z.string().optional(),
  compatibility: atMost(500).optional(),
  metadata: z.record(z.string(), z.string()).optional(),
});

/**
 * Reads `SKILL.md`: front matter between two lines `---`, then the instructions.
 *
 * @throws InvalidInputError if it does not have the format of Agent Skills.
 */
export function parseSkillDocument(text: string): SkillDocument {
  const found = /^\u{feff}?---[ \t]*\r?\n(.*?)(?<=\n)---[ \t]*(?:\r?\n|$)(.*)$/su.exec(text);
  const [, yaml, body] = found ?? [];
  if (yaml === undefined || body === undefined) {
    throw refused("SKILL.md has no front matter between lines `---`", remedy);
  }
  const parsed = fields.safeParse(parseYaml(yaml));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue?.path.join(".") ?? "";
    throw refused(`SKILL.md: ${showHidden(where) || "front matter"}: ${issue?.message ?? "is not valid"}`, remedy);
  }
  const { license, compatibility, metadata = {}, ...rest } = parsed.data;
  return {
    ...rest,
    ...(license === undefined ? {} : { license }),
    ...(compatibility === undefined ? {} : { compatibility }),
    metadata,
    body,
  };
}

/** All scalars are strings, and an alias is an error, so that a small text cannot become a large value. */
function parseYaml(yaml: string): unknown {
  if (yaml.length > mostCharacters) {
    throw refused(`The front matter of SKILL.md has more than ${mostCharacters} characters`, "Move text to the body.");
  }
  let problem: unknown;
  try {
    const document = parseDocument(yaml, { schema: "failsafe", logLevel: "silent", prettyErrors: false });
    [problem] = [...document.errors, ...document.warnings];
    if (problem === undefined) return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    // An alias, or nested too deeply for the stack.
    problem = error;
  }
  const message = problem instanceof Error ? problem.message : String(problem);
  throw refused(
    `The front matter of SKILL.md is not valid YAML: ${showHidden(message).slice(0, 200)}`,
    quoting,
    problem,
  );
}

const quoting = "Put quotes around texts that contain a colon and a space; aliases are not supported.";
