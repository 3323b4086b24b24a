import { FunctionSetupError, type FunctionWithRequirements } from "@fenced/core";

/**
 * Checks that a session has the packages that functions need: without egress, which pools lack by default, nothing
 * can be installed.
 *
 * @throws FunctionSetupError if one is missing; the message names it and installed packages with similar names.
 */
export function checkPackages(functions: readonly FunctionWithRequirements[], available: readonly string[]): void {
  const names = new Map(available.map((name) => [normalise(name), name]));
  for (const requirement of functions.flatMap((each) => each.requirements.pythonPackages ?? [])) {
    const name = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?/.exec(requirement)?.[0];
    // A URL or a path does not reveal the package's name; the session will show whether it can be installed.
    if (name === undefined || /^\S*[:/]/.test(requirement) || names.has(normalise(name))) continue;
    const similar = similarNames(normalise(name), names);
    throw new FunctionSetupError(
      `The sessions of this pool do not have the package "${name}", which a function needs`,
      {
        remedy:
          `${similar.length > 0 ? `Did you mean ${similar.join(" or ")}? ` : ""}Use a package ` +
          "that `getAvailablePackages()` lists, or a pool whose image has it.",
      },
    );
  }
}

function normalise(name: string): string {
  return name.toLowerCase().replaceAll(/[-_.]+/g, "-");
}

function similarNames(wanted: string, names: ReadonlyMap<string, string>): string[] {
  const distances = [...names].map(([name, shown]) => ({ shown, distance: distanceOf(wanted, name) }));
  return distances
    .filter(({ distance }) => distance <= Math.max(2, Math.floor(wanted.length / 4)))
    .toSorted((one, other) => one.distance - other.distance)
    .slice(0, 3)
    .map(({ shown }) => shown);
}

/** The distance between two names: letters to change, or 1 if one contains the other. */
function distanceOf(one: string, other: string): number {
  if (one.length > 2 && other.length > 2 && (one.includes(other) || other.includes(one))) return 1;
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [line, letter] of Array.from(one).entries()) {
    const next = [line + 1];
    for (const [column, theirs] of Array.from(other).entries()) {
      const replaced = (row[column] ?? 0) + (letter === theirs ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
