import path from "node:path";
import { errorCode, PinnedDirectory } from "@fenced/executor-kit";
import { refused } from "./refused.ts";
import type { SkillWarning } from "./skill.ts";

const mostDirectories = 2000;
const deepest = 6;
const ignored = new Set([".git", "node_modules", "__pycache__"]);

/** Where skills are below a directory. */
export interface FoundSkills {
  /** Absolute paths of directories with a `SKILL.md`, sorted. */
  readonly directories: readonly string[];
  readonly warnings: readonly SkillWarning[];
}

/**
 * Finds the directories with a `SKILL.md`: the directory itself, or else those below it, at most six levels down. Does not
 * look into a skill for others, and follows no links.
 *
 * @param top - absolute path.
 * @throws InvalidInputError if it is not a directory that can be read, or too many are below it.
 */
export async function findSkills(top: string): Promise<FoundSkills> {
  const directories: string[] = [];
  const warnings: SkillWarning[] = [];
  let looked = 0;

  async function look(directory: PinnedDirectory, place: string, depth: number): Promise<void> {
    looked += 1;
    if (looked > mostDirectories) {
      throw refused(`${top} has more than ${mostDirectories} directories`, "Name the directory that has the skills.");
    }
    const names: string[] = [];
    for await (const { name, isDirectory, isFile } of directory.entries()) {
      // A link, too: reading it then says what is wrong.
      if (name === "SKILL.md" && !isDirectory) {
        directories.push(place);
        return;
      }
      if (isDirectory && !ignored.has(name)) names.push(name);
      else if (!isDirectory && !isFile && depth === 0) warnings.push(linkAt(path.join(place, name)));
      if (names.length > mostDirectories) break;
    }
    if (depth === deepest) return;
    for (const name of names.toSorted()) {
      const child = await directory.child(name).catch(() => undefined);
      if (!child) continue;
      await using below = child;
      await look(below, path.join(place, name), depth + 1);
    }
  }

  await using opened = await openTop(top);
  await look(opened, top, 0);
  return { directories, warnings };
}

async function openTop(top: string): Promise<PinnedDirectory> {
  try {
    return await PinnedDirectory.open(top);
  } catch (error) {
    throw refused(
      `The directory of skills ${top} cannot be opened (${errorCode(error) ?? "unknown error"})`,
      "Name a directory that exists, with a SKILL.md in it or in its subdirectories.",
      error,
    );
  }
}

function linkAt(place: string): SkillWarning {
  return { path: place, message: "It is a link or a special file. Name the directory that it leads to instead." };
}
