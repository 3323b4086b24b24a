import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { manifestOf, publishableFolders } from "../packages.mjs";
import { runIn } from "./repository-copy.ts";

const bumps = ["none", "patch", "minor", "major"] as const;

/** What the changesets do to one package. */
export interface Release {
  readonly name: string;
  readonly type: (typeof bumps)[number];
  readonly oldVersion: string;
  readonly newVersion: string;
  readonly changesets: readonly Changeset[];
}

interface Changeset {
  readonly id: string;
  readonly summary: string;
  readonly releases: readonly Pick<Release, "name" | "type">[];
}

interface Status {
  readonly changesets: readonly Changeset[];
  readonly releases: readonly (Omit<Release, "changesets"> & { readonly changesets: readonly string[] })[];
}

/** The next release of a workspace, according to changesets. Empty if there are no changesets. */
export function plannedReleases(workspace: string): Release[] {
  const file = "release-plan.json";
  runIn(workspace, "pnpm", ["exec", "changeset", "status", `--output=${file}`]);
  const { changesets, releases } = JSON.parse(readFileSync(join(workspace, file), "utf8")) as Status;
  rmSync(join(workspace, file));
  return releases
    .filter(({ type }) => type !== "none")
    .map((release) => ({ ...release, changesets: changesets.filter(({ id }) => release.changesets.includes(id)) }));
}

/**
 * Compares a workspace in which `changeset version` ran with the plan.
 *
 * @returns The problems, one sentence each.
 */
export function checkVersions(workspace: string, releases: readonly Release[]): string[] {
  if (releases.length === 0) return [];
  const folders = publishableFolders(workspace);
  const versions = new Set(folders.map((folder) => manifestOf(folder).version));
  const problems = folders.flatMap((folder) => checkPackage(folder, releases));
  if (versions.size !== 1) problems.push(`The packages have different versions: ${[...versions].join(", ")}.`);
  const left = readdirSync(join(workspace, ".changeset")).filter(
    (file) => file.endsWith(".md") && file !== "README.md",
  );
  if (left.length > 0) problems.push(`Changesets are left: ${left.join(", ")}.`);
  problems.push(...checkBumps(releases));
  const names = folders.map((folder) => manifestOf(folder).name);
  const strangers = releases.filter(({ name }) => !names.includes(name));
  return [...problems, ...strangers.map(({ name }) => `${name} is private but has a release.`)];
}

/** All packages get the largest bump that a changeset requests, and none gets a larger one because of its peers. */
function checkBumps(releases: readonly Release[]): string[] {
  const asked = releases.flatMap(({ changesets }) => changesets.flatMap((changeset) => changeset.releases));
  const largest = bumps.findLast((bump) => asked.some(({ type }) => type === bump)) ?? "none";
  return releases
    .filter(({ type }) => type !== largest)
    .map(({ name, type }) => `${name} would get a ${type} release, but the changesets request a ${largest} one.`);
}

function checkPackage(folder: string, releases: readonly Release[]): string[] {
  const { name, version } = manifestOf(folder);
  const release = releases.find((candidate) => candidate.name === name);
  if (release === undefined) return [`${name} has no release, though all packages are released together.`];
  if (version !== release.newVersion) return [`${name} has the version ${version} instead of ${release.newVersion}.`];
  const file = join(folder, "CHANGELOG.md");
  const changelog = existsSync(file) ? readFileSync(file, "utf8") : "";
  const [, latest = ""] = changelog.split(/^## /m);
  if (!latest.startsWith(`${version}\n`)) return [`${name}: CHANGELOG.md does not begin with ${version}.`];
  const lines = latest.split("\n").map((line) => line.trim());
  return release.changesets
    .filter(({ summary }) => !lines.some((line) => line.endsWith(summary.split("\n")[0] ?? "")))
    .map(({ id }) => `${name}: CHANGELOG.md does not contain the changeset ${id}.`);
}
